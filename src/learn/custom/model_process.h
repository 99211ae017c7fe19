// The process of a user's cost model: started once and kept, asked over its standard input and answering on
// its standard output.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace tensorsmith::learn {

// Splits a command into words at spaces, outside of '...' and "...", without the quotes; a backslash before a
// character takes it as it is, except within '...'. kInvalidArgument for an open quote, or if there is no
// word.
Result<std::vector<std::string>> split_command(std::string_view command);

// No call blocks for longer than its timeout. The errors say how the process ended, with the last line of its
// standard error, or that it was silent (kTimeout); after any error the process cannot be used again. The
// process gets no terminal signals, no open files and no new privileges, writes no core file, is the first to
// go when memory is short, and ends with the thread that started it.
class ModelProcess {
 public:
  // kNotFound or kIo if the program cannot be started.
  static Result<ModelProcess> start(const std::vector<std::string>& command);
  ModelProcess(ModelProcess&&) noexcept;
  ModelProcess& operator=(ModelProcess&&) = delete;
  // Closes the standard input of the process, and kills it if it has not ended soon after.
  ~ModelProcess();

  // Writes the parts one after the other.
  Status send(std::span<const std::string_view> parts, double timeout_s);
  // Returns the next line that the process writes, without its end.
  Result<std::string> read_line(double timeout_s);
  // Reads the bytes that follow.
  Status read_bytes(void* data, size_t bytes, double timeout_s);

 private:
  ModelProcess() = default;
  // Waits until something can be read, or written if `writes`, and takes what there is to read.
  Status wait(double deadline, double timeout_s, bool writes);
  // Returns whether the stream is still open.
  bool take_output();
  void take_errors();
  // Returns the error that tells how the process ended.
  Error ended();
  int reap(double patience_s);
  std::string last_words() const;

  pid_t pid_ = -1;
  FileDescriptor input_, output_, errors_;
  std::string unread_;  // of the output, from `at_` on
  size_t at_ = 0;
  std::string complaints_;  // the end of what the process wrote to its standard error
};

}  // namespace tensorsmith::learn
