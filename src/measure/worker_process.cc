#include "measure/worker_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "measure/confinement.h"
#include "measure/sandbox.h"
#include "measure/worker.h"

namespace tensorsmith::measure {
namespace {

using record::MeasureResult;
using record::Outcome;

constexpr int kExitCannotExecute = 127;
// Seconds that a process may take to end after its socket was closed.
constexpr double kPatience = 2;

Error system_error(const char* action) {
  return Error{ErrorCode::kIo, "", std::string(action) + ": " + std::generic_category().message(errno)};
}

// Whether the program itself caused the signal.
bool is_own_fault(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
    case SIGXFSZ:
      return true;
    default:
      return false;
  }
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

// Runs between fork and exec: only async-signal-safe calls.
[[noreturn]] void become_worker(pid_t parent, int socket, int errors, int null, char* const* arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // the parent died before the line above
  // Moves the descriptors out of the range that dup2 overwrites.
  socket = ::fcntl(socket, F_DUPFD, 10);
  errors = ::fcntl(errors, F_DUPFD, 10);
  null = ::fcntl(null, F_DUPFD, 10);
  ::dup2(null, 0);
  ::dup2(null, 1);
  ::dup2(errors, 2);
  ::dup2(socket, kWorkerSocket);
  ::close_range(kWorkerSocket + 1, ~0U, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvp(arguments[0], arguments);
  static constexpr char kMessage[] = "cannot execute the program";
  [[maybe_unused]] const ssize_t written = ::write(2, kMessage, sizeof kMessage - 1);
  ::_exit(kExitCannotExecute);
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const std::vector<std::string>& command) {
  TS_CHECK(!command.empty(), "no worker command");
  std::vector<char*> arguments;
  for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  WorkerProcess worker;
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return system_error("cannot make a socket");
  worker.socket_ = sockets[0];
  // Captures stderr for the error message if the worker ends at once.
  worker.stderr_ = ::memfd_create("worker-stderr", MFD_CLOEXEC);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const pid_t parent = ::getpid();
  worker.pid_ = null >= 0 && worker.stderr_ >= 0 ? ::fork() : -1;
  if (worker.pid_ == 0) become_worker(parent, sockets[1], worker.stderr_, null, arguments.data());
  const int why = errno;
  ::close(sockets[1]);
  if (null >= 0) ::close(null);
  if (worker.pid_ < 0) {
    errno = why;
    return system_error("cannot start a worker process");
  }
  return worker;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept { *this = std::move(other); }

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(socket_, other.socket_);
  std::swap(stderr_, other.stderr_);
  std::swap(memory_limit_, other.memory_limit_);
  std::swap(reusable_, other.reusable_);
  std::swap(ended_from_outside_, other.ended_from_outside_);
  return *this;
}

WorkerProcess::~WorkerProcess() {
  reap(0);
  if (socket_ >= 0) ::close(socket_);
  if (stderr_ >= 0) ::close(stderr_);
}

int WorkerProcess::reap(double patience_s) {
  reusable_ = false;
  if (pid_ < 0) return 0;
  const double deadline = monotonic_seconds() + patience_s;
  int status = 0;
  for (;;) {
    const bool late = monotonic_seconds() >= deadline;
    if (late) ::kill(pid_, SIGKILL);
    const pid_t ended = ::waitpid(pid_, &status, late ? 0 : WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) break;
    if (!late) ::usleep(1000);
  }
  pid_ = -1;
  return status;
}

std::string WorkerProcess::printed() const {
  struct stat info{};
  if (::fstat(stderr_, &info) != 0 || info.st_size == 0) return "";
  const off_t bytes = std::min<off_t>(info.st_size, 300);
  std::string text(bytes, '\0');
  const ssize_t got = ::pread(stderr_, text.data(), text.size(), info.st_size - bytes);
  text.resize(got > 0 ? got : 0);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// A stopped worker neither answers nor ends.
bool WorkerProcess::is_stopped() const {
  siginfo_t info{};
  return ::waitid(P_PID, pid_, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

double WorkerProcess::processor_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (pid_ < 0 || ::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

Status WorkerProcess::wait_ready(double timeout_s) {
  auto message = receive_message(socket_, {monotonic_seconds() + timeout_s, [this] { return is_stopped(); }});
  if (message.ok() && message->type == MessageType::kReady) {
    reusable_ = true;
    return {};
  }
  const bool silent = !message.ok() && message.error().code == ErrorCode::kTimeout;
  const bool stopped = !message.ok() && message.error().code == ErrorCode::kCancelled;
  const int status = reap(silent || stopped ? 0 : kPatience);
  std::string reason = "the measurement worker did not start: ";
  if (silent) {
    reason += "no answer for " + std::to_string(static_cast<int>(timeout_s)) + " s";
  } else if (stopped) {
    reason += "it was suspended by a signal";
  } else if (WIFSIGNALED(status)) {
    reason += "ended by " + signal_name(WTERMSIG(status));
  } else {
    reason += "exit status " + std::to_string(WEXITSTATUS(status));
  }
  const std::string text = printed();
  if (!text.empty()) reason += " (" + text + ")";
  return Error{ErrorCode::kIo, "", reason};
}

bool WorkerProcess::memory_used_up() const {
  const std::string path = "/proc/" + std::to_string(pid_) + "/statm";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[64] = {};
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (got <= 0 || memory_limit_ == 0) return false;
  const int64_t bytes = std::strtoll(text, nullptr, 10) * ::sysconf(_SC_PAGESIZE);
  return bytes > memory_limit_ - memory_limit_ / 8;
}

MeasureResult WorkerProcess::died(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    // This process sends SIGKILL only after timeouts, and then does not get here.
    ended_from_outside_ = !is_own_fault(signal);
    if (signal == SIGKILL)
      return failure(Outcome::kMemoryLimit,
                     "killed by the operating system, which probably ran out of memory");
    // The worker could not name the call: signals were blocked, or the call was of another
    // architecture.
    if (signal == SIGSYS) return failure(Outcome::kCrash, describe_forbidden_call(""));
    return failure(Outcome::kCrash, signal_name(signal));
  }
  const int code = WEXITSTATUS(status);
  if (code == kExitMemoryLimit) return failure(Outcome::kMemoryLimit, "the memory limit was reached");
  if (code == kExitForbiddenCall) return failure(Outcome::kCrash, describe_forbidden_call(printed()));
  const std::string text = printed();
  return failure(Outcome::kCrash, "the worker ended with status " + std::to_string(code) +
                                      (text.empty() ? "" : " (" + text + ")"));
}

MeasureResult WorkerProcess::exchange(MessageType type, const std::vector<char>& payload, int fd,
                                      MessageType answer, double timeout_s) {
  const Patience patience(monotonic_seconds() + timeout_s, [this] { return is_stopped(); });
  TS_CHECK(reusable_, "the worker cannot be used again");
  reusable_ = false;
  ended_from_outside_ = false;
  Error error;
  if (auto sent = send_message(socket_, type, payload, fd, patience); !sent.ok()) {
    error = sent.error();
  } else {
    auto message = receive_message(socket_, patience);
    if (message.ok() && message->type == answer) {
      auto result = decode_result(message->payload);
      if (result.ok()) {
        // Wrong outputs may come from stray writes, which may have damaged other memory too.
        reusable_ = result->outcome == Outcome::kOk || result->outcome == Outcome::kBuildError;
        return std::move(result).value();
      }
    }
    if (message.ok()) {
      if (message->fd >= 0) ::close(message->fd);
      error = Error{ErrorCode::kCorrupt, "", "a message of another type"};
    } else {
      error = message.error();
    }
  }
  if (error.code == ErrorCode::kTimeout) {
    const bool memory = memory_used_up();
    reap(0);
    char text[64];
    std::snprintf(text, sizeof text, "not finished after %.3g s", timeout_s);
    return failure(memory ? Outcome::kMemoryLimit : Outcome::kRunTimeout,
                   memory ? "the memory limit was reached" : text);
  }
  if (error.code == ErrorCode::kCancelled) {
    reap(0);
    ended_from_outside_ = true;
    return failure(Outcome::kRunTimeout, "the worker was suspended by a signal");
  }
  if (error.code == ErrorCode::kCorrupt) {
    reap(0);
    return failure(Outcome::kCrash, "the worker sent an invalid answer (" + error.reason + ")");
  }
  return died(reap(kPatience));
}

MeasureResult WorkerProcess::set_task(const std::vector<char>& encoded_task, int memory_fd,
                                      double timeout_s) {
  auto task = decode_task(encoded_task);
  TS_CHECK(task.ok(), "the task is not valid");
  memory_limit_ = task->memory_limit_bytes;
  return exchange(MessageType::kTask, encoded_task, memory_fd, MessageType::kTaskReady, timeout_s);
}

MeasureResult WorkerProcess::run(const std::vector<char>& encoded_request, double timeout_s) {
  return exchange(MessageType::kRun, encoded_request, -1, MessageType::kResult, timeout_s);
}

}  // namespace tensorsmith::measure
