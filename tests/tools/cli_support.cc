#include "cli_support.h"

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <future>
#include <stdexcept>

namespace tensorsmith::testing {
namespace {

namespace fs = std::filesystem;

// Runs in the child, with the default SIGPIPE action as in a shell.
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

bool others_may_enter(const fs::path& folder) {
  for (fs::path path = folder;; path = path.parent_path()) {
    if ((fs::status(path).permissions() & fs::perms::others_exec) == fs::perms::none) return false;
    if (path == path.root_path()) return true;
  }
}

// Returns a program that other users may run. In a build below a folder that they cannot enter,
// such as root's home, it is a copy elsewhere, with the files that are shipped with it; the copy is
// removed when the test ends.
std::string program_for_others() {
  const fs::path program = TENSORSMITH_PROGRAM;
  if (others_may_enter(program.parent_path())) return program;
  static const TemporaryDirectory copy;
  fs::path copied = copy.path() / "bin/tensorsmith";
  if (!fs::exists(copied)) {
    fs::permissions(copy.path(), fs::perms(0755));
    for (const char* folder : {"bin", "share/tensorsmith"}) fs::create_directories(copy.path() / folder);
    for (const auto& entry : fs::directory_iterator(TENSORSMITH_MODELS))
      fs::copy(entry.path(), copy.path() / "share/tensorsmith");
    fs::copy(program, copied);
  }
  return copied;
}

pid_t spawn(const std::vector<std::string>& arguments, const CliOptions& options, int out, int err) {
  std::vector<std::string> words = {options.drop_privileges && geteuid() == 0 ? program_for_others()
                                                                              : TENSORSMITH_PROGRAM};
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
    if (options.process_limit > 0) {
      const auto limit = static_cast<rlim_t>(options.process_limit);
      const rlimit processes{limit, limit};
      setrlimit(RLIMIT_NPROC, &processes);
    }
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);  // user settings must not affect the tests
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

// Calls `printed` with the process and its output so far, each time that there is more.
CliResult run(const std::vector<std::string>& arguments, const CliOptions& options,
              const std::function<void(pid_t, const CliResult&)>& printed) {
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
        printed(pid, result);
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

}  // namespace

CliResult run_cli(const std::vector<std::string>& arguments, const CliOptions& options) {
  return run(arguments, options, [](pid_t, const CliResult&) {});
}

CliResult interrupt_cli(const std::vector<std::string>& arguments, const std::string& text,
                        const CliOptions& options) {
  bool sent = false;
  return run(arguments, options, [&](pid_t pid, const CliResult& so_far) {
    if (sent || so_far.err.find(text) == std::string::npos) return;
    kill(pid, SIGINT);
    sent = true;
  });
}

pid_t start_cli(const std::vector<std::string>& arguments, const CliOptions& options) {
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const pid_t pid = spawn(arguments, options, null, null);
  close(null);
  return pid;
}

int free_port() {
  const int number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool got = number >= 0 && bind(number, any, size) == 0 && getsockname(number, any, &size) == 0;
  close(number);
  if (!got) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

std::vector<std::string> as_rank(std::vector<std::string> arguments, int rank, int ranks, int port) {
  arguments.insert(arguments.end(), {"--ranks", std::to_string(ranks), "--rank", std::to_string(rank),
                                     "--master", "127.0.0.1:" + std::to_string(port)});
  return arguments;
}

std::vector<CliResult> run_ranks(const std::vector<std::vector<std::string>>& commands,
                                 const CliOptions& options) {
  const int port = free_port(), ranks = static_cast<int>(commands.size());
  std::vector<std::future<CliResult>> running;
  for (int r = 0; r < ranks; ++r)
    running.push_back(std::async(std::launch::async, [&commands, &options, r, ranks, port] {
      return run_cli(as_rank(commands[static_cast<size_t>(r)], r, ranks, port), options);
    }));
  std::vector<CliResult> out;
  out.reserve(running.size());
  for (auto& one : running) out.push_back(one.get());
  return out;
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
