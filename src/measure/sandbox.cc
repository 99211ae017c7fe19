#include "measure/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/processors.h"

namespace tensorsmith::measure {
namespace {

// Read by the signal handler; a worker process has only one sandbox.
std::atomic<int64_t> limit_bytes{0};
// Kept open, because the worker cannot open files later.
std::atomic<int> statm{-1};
// Limit on what the worker prints, because its parent keeps it in memory.
constexpr rlim_t kMaxPrintedBytes = 64 << 10;

// Returns the field of /proc/self/statm with this number, in bytes; 0 if unknown.
// Async-signal-safe.
int64_t memory_field(int number) {
  char text[128];
  const ssize_t got = ::pread(statm.load(std::memory_order_relaxed), text, sizeof text, 0);
  ssize_t i = 0;
  for (; i < got && number > 0; ++i) number -= text[i] == ' ' ? 1 : 0;
  int64_t pages = 0;
  for (; i < got && text[i] >= '0' && text[i] <= '9'; ++i) pages = pages * 10 + (text[i] - '0');
  return pages * ::sysconf(_SC_PAGESIZE);
}
int64_t address_space_bytes() { return memory_field(0); }
int64_t written_bytes() { return memory_field(5); }

// Sets the soft limit of a resource.
void limit(__rlimit_resource resource, int64_t bytes) {
  rlimit value{};
  ::getrlimit(resource, &value);
  const rlim_t soft = bytes;
  value.rlim_cur = value.rlim_max == RLIM_INFINITY ? soft : std::min(soft, value.rlim_max);
  ::setrlimit(resource, &value);
}

// Removes tokens and paths of the user from the memory that candidates can read.
void wipe_environment() {
  for (char** entry = environ; entry && *entry; ++entry) ::explicit_bzero(*entry, std::strlen(*entry));
  ::clearenv();
}

void on_fatal_signal(int signal) {
  if (memory_is_exhausted()) ::_exit(kExitMemoryLimit);
  // Takes the default action by returning to the same instruction (or, for abort, by raising the
  // signal again).
  ::signal(signal, SIG_DFL);
  if (signal == SIGABRT) ::raise(signal);
}

}  // namespace

bool memory_is_exhausted() {
  const int64_t limit = limit_bytes.load(std::memory_order_relaxed);
  if (limit == 0) return false;
  // The refused allocation is usually a large or growing one, so the limit need not be reached
  // exactly.
  return address_space_bytes() > limit - std::max<int64_t>(limit / 8, int64_t{64} << 20);
}

int enter_sandbox(bool for_driver) {
  // Requests matrix units for kernels while the process may still do so.
  static_cast<void>(may_use_tiles());
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  if (!kSanitized && !for_driver) {
    const rlimit printed{kMaxPrintedBytes, kMaxPrintedBytes};
    ::setrlimit(RLIMIT_FSIZE, &printed);
    wipe_environment();
  }
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) ::signal(signal, SIG_IGN);
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    // Best effort: the memory limit is the essential protection.
    [[maybe_unused]] const ssize_t written = ::write(fd, "1000", 4);
    ::close(fd);
  }
  // After a stack overflow the handler needs another stack.
  constexpr size_t kStackBytes = 64 << 10;
  void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack != MAP_FAILED) {
    stack_t alternative{};
    alternative.ss_sp = stack;
    alternative.ss_size = kStackBytes;
    ::sigaltstack(&alternative, nullptr);
  }
  struct sigaction action{};
  action.sa_handler = on_fatal_signal;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE}) ::sigaction(signal, &action, nullptr);
  statm = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  return statm;
}

void limit_memory(int64_t more_bytes) {
  if (kSanitized) return;
  const int64_t now = address_space_bytes();
  if (now == 0) return;
  limit(RLIMIT_AS, now + more_bytes);
  limit_bytes = now + more_bytes;
}

void limit_written_memory(int64_t more_bytes) {
  if (kSanitized) return;
  const int64_t now = written_bytes();
  if (now > 0) limit(RLIMIT_DATA, now + more_bytes);
}

}  // namespace tensorsmith::measure
