// Tasks, devices and records as JSON lines, and the file access that export and import need.
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

// One line without the newline. Bytes that are not UTF-8 become U+FFFD.
std::string to_json_line(const TaskInfo& task);
std::string to_json_line(const DeviceInfo& device);
std::string to_json_line(const Record& record);
std::string to_json_line(const Profile& profile);  // after the line of its record

using JsonLine = Database::Item;

// Strict: every field present, of the right type and in range, "key" equal to the content key. kCorrupt, the
// reason names the field.
Result<JsonLine> parse_json_line(std::string_view line);

// What add() demands of a record: kInvalidArgument, the reason names the field.
Status check_record(const Record& record);

// Ok if some of the first 100,000 lines that are not blank is a task, a device or a record, or all are blank.
// kCorrupt for a foreign file, as one error instead of one for each of its lines.
Status check_jsonl_file(const std::string& path);

// A new file beside `path` that is to take its place: no other file has its name, so none is lost, and the
// rename stays in the folder. kNotFound, kIo; kInvalidArgument where path is something else than a file.
struct FileBeside {
  std::string path;       // the file that is replaced: where a link leads to
  std::string temporary;  // the new one
  int descriptor = -1;    // open for reading and writing
};
Result<FileBeside> create_file_beside(const std::string& path);

// Writes a file beside its destination and renames it over it on commit(); without commit nothing is left.
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
