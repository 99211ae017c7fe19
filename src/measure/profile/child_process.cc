#include "measure/profile/child_process.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tensorsmith::measure {
namespace {

using Counters = std::map<std::string, double>;

std::string encode(const Counters& counters) {
  std::string out;
  for (const auto& [name, value] : counters) {
    char number[40];
    std::snprintf(number, sizeof number, "%.17g\n", value);
    out += name + '\t' + number;
  }
  return out + "end\n";
}

// Returns an error if the text is incomplete.
Result<Counters> decode(const std::string& text) {
  Counters out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line == "end") return out;
    const size_t tab = line.rfind('\t');
    if (tab == std::string::npos) break;
    out[line.substr(0, tab)] = std::strtod(line.c_str() + tab + 1, nullptr);
  }
  return Error{ErrorCode::kIo, "simulation", "the process did not return all counters"};
}

[[noreturn]] void answer(int pipe, const std::function<Counters()>& function) {
  // Crashes are expected here, so no core file is written.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  for (const int signal : {SIGSEGV, SIGILL, SIGBUS, SIGFPE, SIGABRT}) std::signal(signal, SIG_DFL);
  std::string text;
  try {
    text = encode(function());
  } catch (...) {
    ::_exit(1);
  }
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(pipe, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(1);
    written += n;
  }
  ::_exit(0);
}

// Reads the pipe until its other end is closed; false on timeout.
bool read_all(int pipe, double most_seconds, std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(most_seconds);
  char buffer[4096];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd wait{pipe, POLLIN, 0};
    const int ready = ::poll(&wait, 1, left.count());
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = ::read(pipe, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    text.append(buffer, n);
  }
}

}  // namespace

Result<Counters> in_child_process(double most_seconds, const std::function<Counters()>& function) {
  int ends[2];
  if (::pipe(ends) != 0)
    return Error{ErrorCode::kResourceExhausted, "simulation",
                 std::string("no pipe: ") + std::strerror(errno)};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    answer(ends[1], function);
  }
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return Error{ErrorCode::kResourceExhausted, "simulation",
                 std::string("no process: ") + std::strerror(errno)};
  }
  std::string text;
  const bool in_time = read_all(ends[0], most_seconds, text);
  ::close(ends[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time)
    return Error{ErrorCode::kTimeout, "simulation",
                 "the program took more than " + std::to_string(static_cast<int>(most_seconds)) + " s"};
  if (WIFSIGNALED(status))
    return Error{ErrorCode::kIllegal, "simulation",
                 std::string("the program was ended by signal ") + ::strsignal(WTERMSIG(status))};
  return decode(text);
}

}  // namespace tensorsmith::measure
