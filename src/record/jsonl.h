// Converts tasks, devices, records and profiles to JSON lines and back, and writes files
// atomically.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "record/database.h"

namespace tensorsmith::record {

// Returns one line without the newline. Invalid UTF-8 becomes U+FFFD.
std::string to_json_line(const TaskInfo& task);
std::string to_json_line(const DeviceInfo& device);
std::string to_json_line(const Record& record);
std::string to_json_line(const Profile& profile);  // follows the line of its record

using JsonLine = Database::Item;

// Parses one line. Every field must be present, of the right type and in range, and "key" of a record
// must be its content key. Otherwise returns kCorrupt with a reason that says what is wrong.
Result<JsonLine> parse_json_line(std::string_view line);

// Checks what Database::add() requires of a record. Returns kInvalidArgument with a reason that says what
// is wrong.
Status check_record(const Record& record);

// Checks that a file is one of ours: one of its first 100,000 non-blank lines is a valid item, or all its
// lines are blank. Otherwise returns kCorrupt, so that a foreign file gives one error instead of one per
// line. Also returns the errors of LineReader.
Status check_jsonl_file(const std::string& path);

// A new file in the directory of `path`, to replace it by a rename. Its name is unique, so that no
// other file is overwritten. Errors: kNotFound, kIo; kInvalidArgument if the path is not a regular
// file.
struct FileBeside {
  std::string path;       // the file to be replaced, with links resolved
  std::string temporary;  // the new file
  int descriptor = -1;    // open for reading and writing
};
Result<FileBeside> create_file_beside(const std::string& path);

// Writes a temporary file beside the destination, which commit() renames to the destination;
// without commit() it is removed.
class AtomicFileWriter {
 public:
  static Result<std::unique_ptr<AtomicFileWriter>> open(const std::string& path);
  ~AtomicFileWriter();
  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;

  Status write(std::string_view bytes);
  Status write_line(std::string_view line);
  Status commit();  // flushes to disk and renames

 private:
  AtomicFileWriter(std::string path, std::string temporary, std::FILE* file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}
  Error io_error(const char* action) const;
  std::string path_, temporary_;
  std::FILE* file_;
};

}  // namespace tensorsmith::record
