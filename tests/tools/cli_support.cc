#include "cli_support.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace tensorsmith::testing {
namespace {

// In the child, with SIGPIPE as a shell leaves it.
void redirect(Stream stream, int captured, int descriptor) {
  switch (stream) {
    case Stream::kCaptured:
      dup2(captured, descriptor);
      return;
    case Stream::kClosed:
      close(descriptor);
      return;
    case Stream::kFull:
      dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), descriptor);
      return;
    case Stream::kNoReader: {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) _exit(127);
      dup2(ends[1], descriptor);
      close(ends[0]);
      return;
    }
  }
}

pid_t spawn(const std::vector<std::string>& arguments, const CliOptions& options, int out, int err) {
  std::vector<std::string> words = {TENSORSMITH_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    redirect(options.out, out, STDOUT_FILENO);
    redirect(options.err, err, STDERR_FILENO);
    if (chdir(options.directory.c_str()) != 0) _exit(127);
    if (options.file_size_limit > 0) {
      signal(SIGXFSZ, SIG_IGN);
      const auto limit = static_cast<rlim_t>(options.file_size_limit);
      const rlimit size{limit, limit};
      setrlimit(RLIMIT_FSIZE, &size);
    }
    for (const std::string& entry : options.environment) {
      const size_t equals = entry.find('=');
      setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
    }
    constexpr unsigned kNobody = 65534;
    if (options.drop_privileges && geteuid() == 0 &&
        (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
      _exit(127);
    }
    execv(argv[0], argv.data());
    _exit(127);
  }
  return pid;
}

}  // namespace

CliResult run_cli(const std::vector<std::string>& arguments, const CliOptions& options) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  const pid_t pid = spawn(arguments, options, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  CliResult result;
  pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* sinks[2] = {&result.out, &result.err};
  int open_count = 2;
  while (open_count > 0 && poll(fds, 2, -1) > 0) {
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || !(fds[i].revents & (POLLIN | POLLHUP | POLLERR))) continue;
      char buffer[4096];
      const ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        sinks[i]->append(buffer, static_cast<size_t>(n));
      } else {
        close(fds[i].fd);
        fds[i].fd = -1;
        --open_count;
      }
    }
  }
  int status = 0;
  waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

pid_t start_cli(const std::vector<std::string>& arguments, const CliOptions& options) {
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const pid_t pid = spawn(arguments, options, null, null);
  close(null);
  return pid;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tensorsmith-test-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path onnx_test_data() {
  const std::filesystem::path path = "/usr/share/libonnx-testdata/data";
  return std::filesystem::is_directory(path) ? path : std::filesystem::path();
}

}  // namespace tensorsmith::testing
