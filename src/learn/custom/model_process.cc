#include "learn/custom/model_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/clock.h"

namespace tensorsmith::learn {

namespace {

// Seconds that the process may take to end after its streams were closed.
constexpr double kEndPatience = 1;
constexpr size_t kReadAtOnce = size_t{1} << 16;
constexpr size_t kMostLineBytes = size_t{1} << 28;
constexpr size_t kKeptComplaints = 4096;
constexpr size_t kShownWords = 300;

std::string text_of_errno(int number) { return std::generic_category().message(number); }

// The child's ends of the streams.
struct ChildStreams {
  int input = -1, output = -1, errors = -1;
  int failure = -1;  // gets errno if the program cannot be executed
};

// Runs between fork and exec: only async-signal-safe calls.
[[noreturn]] void become_model(pid_t parent, ChildStreams streams, char* const* arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // the parent died before the line above
  ::setpgid(0, 0);                        // Ctrl-C at the terminal is for the parent
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); file >= 0) {
    [[maybe_unused]] const ssize_t written = ::write(file, "1000", 4);
    ::close(file);
  }
  // Moves the descriptors out of the range that dup2 overwrites.
  for (int* fd : {&streams.input, &streams.output, &streams.errors}) *fd = ::fcntl(*fd, F_DUPFD, 10);
  streams.failure = ::fcntl(streams.failure, F_DUPFD_CLOEXEC, 10);
  ::dup2(streams.input, 0);
  ::dup2(streams.output, 1);
  ::dup2(streams.errors, 2);
  ::close_range(3, static_cast<unsigned>(streams.failure) - 1, 0);
  ::close_range(static_cast<unsigned>(streams.failure) + 1, ~0U, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvp(arguments[0], arguments);
  const int why = errno;
  [[maybe_unused]] const ssize_t written = ::write(streams.failure, &why, sizeof why);
  ::_exit(127);
}

Error cannot_start(const std::string& program, int number) {
  if (number == ENOENT) return {ErrorCode::kNotFound, "", "the program '" + program + "' was not found"};
  if (number == EACCES)
    return {ErrorCode::kIo, "",
            "the program '" + program +
                "' may not be executed; make it executable, or name its interpreter: command:python3 " +
                program};
  if (number == ENOEXEC)
    return {ErrorCode::kIo, "",
            "the program '" + program +
                "' is no executable file; begin it with a line such as #!/usr/bin/env python3"};
  return {ErrorCode::kIo, "", "the program '" + program + "' cannot be started: " + text_of_errno(number)};
}

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view command) {
  std::vector<std::string> words;
  bool inside = false;  // whether the last word goes on
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    char c = command[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == quote) {
      quote = 0;
      continue;
    }
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      continue;
    }
    if (c == '\\' && quote != '\'' && i + 1 < command.size()) c = command[++i];
    words.back() += c;
  }
  if (quote != 0)
    return Error{ErrorCode::kInvalidArgument, "", std::string("the quote ") + quote + " has no end"};
  if (words.empty() || words.front().empty())
    return Error{ErrorCode::kInvalidArgument, "",
                 "names no program; write command:PROGRAM, for example \"command:python3 model.py\""};
  return words;
}

Result<ModelProcess> ModelProcess::start(const std::vector<std::string>& command) {
  TS_CHECK(!command.empty(), "no command");
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // Writing to a socket can report that the reader is gone without a signal.
  int input[2], output[2], errors[2], failure[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0)
    return Error{ErrorCode::kIo, "", "cannot make a socket: " + text_of_errno(errno)};
  const FileDescriptor child_input(input[1]);
  ModelProcess model;
  model.input_ = FileDescriptor(input[0]);
  if (::pipe2(output, O_CLOEXEC) != 0)
    return Error{ErrorCode::kIo, "", "cannot make a pipe: " + text_of_errno(errno)};
  FileDescriptor child_output(output[1]);
  model.output_ = FileDescriptor(output[0]);
  if (::pipe2(errors, O_CLOEXEC) != 0)
    return Error{ErrorCode::kIo, "", "cannot make a pipe: " + text_of_errno(errno)};
  FileDescriptor child_errors(errors[1]);
  model.errors_ = FileDescriptor(errors[0]);
  if (::pipe2(failure, O_CLOEXEC) != 0)
    return Error{ErrorCode::kIo, "", "cannot make a pipe: " + text_of_errno(errno)};
  FileDescriptor child_failure(failure[1]);
  const FileDescriptor failed(failure[0]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0)
    become_model(parent, {child_input.get(), child_output.get(), child_errors.get(), child_failure.get()},
                 arguments.data());
  if (child < 0) return Error{ErrorCode::kIo, "", "cannot start a process: " + text_of_errno(errno)};
  model.pid_ = child;
  // The streams end when the child's own descriptors are the last ones.
  child_output = FileDescriptor();
  child_errors = FileDescriptor();
  child_failure = FileDescriptor();
  int why = 0;
  ssize_t got = 0;
  while ((got = ::read(failed.get(), &why, sizeof why)) < 0 && errno == EINTR) {
  }
  if (got > 0) return cannot_start(command.front(), why);
  for (const int fd : {model.input_.get(), model.output_.get(), model.errors_.get()})
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return model;
}

ModelProcess::ModelProcess(ModelProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      unread_(std::move(other.unread_)),
      at_(other.at_),
      complaints_(std::move(other.complaints_)) {}

ModelProcess::~ModelProcess() {
  input_ = FileDescriptor();
  reap(kEndPatience);
}

int ModelProcess::reap(double patience_s) {
  if (pid_ < 0) return 0;
  const double deadline = SystemClock().monotonic_seconds() + patience_s;
  int status = 0;
  for (;;) {
    const bool late = SystemClock().monotonic_seconds() >= deadline;
    if (late) ::kill(pid_, SIGKILL);
    const pid_t ended = ::waitpid(pid_, &status, late ? 0 : WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) break;
    if (!late) ::usleep(1000);
  }
  ::kill(-pid_, SIGKILL);  // the processes that it started
  pid_ = -1;
  return status;
}

bool ModelProcess::take_output() {
  if (at_ == unread_.size()) {
    unread_.clear();
    at_ = 0;
  }
  for (;;) {
    const size_t before = unread_.size();
    unread_.resize(before + kReadAtOnce);
    const ssize_t got = ::read(output_.get(), unread_.data() + before, kReadAtOnce);
    unread_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    return got != 0;
  }
}

void ModelProcess::take_errors() {
  char text[4096];
  for (;;) {
    const ssize_t got = ::read(errors_.get(), text, sizeof text);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errors_ = FileDescriptor();
    if (got <= 0) break;
    complaints_.append(text, static_cast<size_t>(got));
    if (complaints_.size() > kKeptComplaints) complaints_.erase(0, complaints_.size() - kKeptComplaints);
  }
}

std::string ModelProcess::last_words() const {
  const size_t end = complaints_.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  const size_t begin = complaints_.find_last_of('\n', end);
  std::string line = complaints_.substr(begin == std::string::npos ? 0 : begin + 1, kShownWords);
  line.resize(std::min(line.size(), end - (begin == std::string::npos ? 0 : begin + 1) + 1));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return line;
}

Error ModelProcess::ended() {
  const int status = reap(kEndPatience);
  if (errors_.valid()) take_errors();
  std::string how = "the program ended";
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    how = "the program was ended by " +
          (name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(WTERMSIG(status)));
  } else {
    how += " with status " + std::to_string(WEXITSTATUS(status));
  }
  const std::string words = last_words();
  return {ErrorCode::kIo, "", how + " instead of answering" + (words.empty() ? "" : ": " + words)};
}

Status ModelProcess::wait(double deadline, double timeout_s, bool writes) {
  for (;;) {
    const double left = deadline - SystemClock().monotonic_seconds();
    if (left <= 0) {
      ::kill(pid_, SIGKILL);
      reap(0);
      if (errors_.valid()) take_errors();
      const std::string words = last_words();
      char text[96];
      std::snprintf(text, sizeof text, "the program has not answered for %.3g s", timeout_s);
      return Error{ErrorCode::kTimeout, "", text + (words.empty() ? "" : "; it printed: " + words)};
    }
    pollfd streams[3] = {
        {output_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}, {writes ? input_.get() : -1, POLLOUT, 0}};
    const int ready = ::poll(streams, 3, static_cast<int>(std::min(left * 1000 + 1, 1e6)));
    if (ready < 0 && errno != EINTR) return Error{ErrorCode::kIo, "", "cannot wait: " + text_of_errno(errno)};
    if (ready <= 0) continue;
    if (streams[1].revents != 0) take_errors();
    if (streams[0].revents != 0 && !take_output()) return ended();
    if (streams[0].revents != 0 || streams[2].revents != 0) return {};
  }
}

Status ModelProcess::send(std::span<const std::string_view> parts, double timeout_s) {
  if (pid_ < 0) return Error{ErrorCode::kIo, "", "the program has ended"};
  const double deadline = SystemClock().monotonic_seconds() + timeout_s;
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const ssize_t sent = ::send(input_.get(), part.data(), part.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        part.remove_prefix(static_cast<size_t>(sent));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        TS_RETURN_IF_ERROR(wait(deadline, timeout_s, true));
      } else if (errno != EINTR) {
        return ended();
      }
    }
  }
  return {};
}

Result<std::string> ModelProcess::read_line(double timeout_s) {
  if (pid_ < 0) return Error{ErrorCode::kIo, "", "the program has ended"};
  const double deadline = SystemClock().monotonic_seconds() + timeout_s;
  size_t searched = 0;
  for (;;) {
    const size_t end = unread_.find('\n', at_ + searched);
    if (end != std::string::npos) {
      std::string line = unread_.substr(at_, end - at_);
      at_ = end + 1;
      return line;
    }
    searched = unread_.size() - at_;
    if (searched > kMostLineBytes)
      return Error{ErrorCode::kCorrupt, "", "the program's answer is longer than 256 MiB"};
    if (searched == 0) at_ = 0, unread_.clear();
    TS_RETURN_IF_ERROR(wait(deadline, timeout_s, false));
  }
}

Status ModelProcess::read_bytes(void* data, size_t bytes, double timeout_s) {
  if (pid_ < 0) return Error{ErrorCode::kIo, "", "the program has ended"};
  const double deadline = SystemClock().monotonic_seconds() + timeout_s;
  while (unread_.size() - at_ < bytes) TS_RETURN_IF_ERROR(wait(deadline, timeout_s, false));
  std::memcpy(data, unread_.data() + at_, bytes);
  at_ += bytes;
  return {};
}

}  // namespace tensorsmith::learn
