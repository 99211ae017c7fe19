// Runs the tensorsmith program as a user would.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tensorsmith::testing {

struct CliResult {
  int exit_code = -1;  // 128 + signal if killed by one
  std::string out;
  std::string err;
};

// Where a standard stream goes.
enum class Stream : uint8_t {
  kCaptured,  // into the result
  kClosed,    // >&-
  kFull,      // >/dev/full: a disk without space
  kNoReader   // a pipe whose reader is gone, as with `| head`
};

struct CliOptions {
  std::filesystem::path directory = std::filesystem::current_path();
  int64_t file_size_limit = 0;           // bytes; 0 = none: writes beyond it fail, like on a full disk
  std::vector<std::string> environment;  // NAME=value, added
  Stream out = Stream::kCaptured, err = Stream::kCaptured;
  int process_limit = 0;         // processes and threads of the user; 0 = none
  bool drop_privileges = false;  // root becomes nobody, who may not write everywhere
};

CliResult run_cli(const std::vector<std::string>& arguments, const CliOptions& options = {});
// Does the same as run_cli(), and sends SIGINT once the program's standard error contains `text`.
CliResult interrupt_cli(const std::vector<std::string>& arguments, const std::string& text,
                        const CliOptions& options = {});
// Starts the program with its output discarded and returns at once.
pid_t start_cli(const std::vector<std::string>& arguments, const CliOptions& options = {});

// Returns a port of this machine that is free at the moment.
int free_port();
// Adds --rank RANK --ranks RANKS --master, on this machine.
std::vector<std::string> as_rank(std::vector<std::string> arguments, int rank, int ranks, int port);
// Runs all ranks of a training at the same time.
std::vector<CliResult> run_ranks(const std::vector<std::vector<std::string>>& commands,
                                 const CliOptions& options);

// A fresh directory that is removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// Returns Debian's ONNX conformance cases; empty if the package is not installed.
std::filesystem::path onnx_test_data();

}  // namespace tensorsmith::testing
