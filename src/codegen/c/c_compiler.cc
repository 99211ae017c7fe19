#include "codegen/c/c_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/input_file.h"

extern char** environ;

namespace tensorsmith::codegen {
namespace {

constexpr const char* kCompiler = "cc";
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

Error io_error(const std::string& path, int number) { return {ErrorCode::kIo, path, std::strerror(number)}; }

}  // namespace

Status write_file(const std::string& path, const char* data, size_t bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(data, static_cast<std::streamsize>(bytes));
  out.close();
  return out.good() ? Status() : Status(Error{ErrorCode::kIo, path, "cannot be written"});
}

Result<std::vector<char>> read_file(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, kMaxFileBytes));
  return std::vector<char>(bytes.begin(), bytes.end());
}

Status run_c_compiler(const std::vector<std::string>& arguments, const ScratchDirectory& scratch) {
  std::vector<std::string> words = {kCompiler};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string messages = scratch.file("messages");

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
  // The compiler runs in a process group of its own, so that Ctrl-C at a terminal interrupts only
  // this program, which ends after the current kernel.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = -1;
  const int failed = ::posix_spawnp(&child, kCompiler, &actions, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Error{ErrorCode::kUnsupported, kCompiler,
                 std::string("cannot be started (") + std::strerror(failed) +
                     "); install a C compiler, or build the C of `compile --emit c` where there is one"};
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return io_error(kCompiler, errno);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  // The reason is the first line that contains an error message, else the first line that does not
  // end with a colon: linkers format errors differently, after a line that names the function and
  // ends with a colon.
  std::string reason = WIFEXITED(status) ? "ended with status " + std::to_string(WEXITSTATUS(status))
                                         : "was killed by signal " + std::to_string(WTERMSIG(status));
  std::ifstream text(messages);
  std::string first;
  for (std::string line; std::getline(text, line);) {
    if (first.empty() && !line.ends_with(':')) first = line;
    if (line.find(" error: ") == std::string::npos || line.starts_with("collect2:")) continue;
    first = line;
    break;
  }
  if (!first.empty()) reason = first;
  return Error{ErrorCode::kInvalidArgument, kCompiler, reason};
}

}  // namespace tensorsmith::codegen
