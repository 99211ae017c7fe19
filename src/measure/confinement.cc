#include "measure/confinement.h"

#include <dirent.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <vector>

#include "measure/sandbox.h"

namespace tensorsmith::measure {
namespace {

// --- Landlock, declared as in linux/landlock.h of recent kernels; older headers lack the later
// fields.

struct LandlockRuleset {
  uint64_t handled_access_fs = 0;
  uint64_t handled_access_net = 0;  // since version 4
  uint64_t scoped = 0;              // since version 6
};
constexpr long kCreateRuleset = 444, kRestrictSelf = 446;  // equal on all architectures
constexpr uint32_t kAskVersion = 1;

// Returns the rights that a version of Landlock can deny: the lowest `count` bits.
constexpr uint64_t low_bits(int count) { return (uint64_t{1} << count) - 1; }
uint64_t file_rights(long version) {
  if (version >= 5) return low_bits(16);  // + ioctl of devices
  if (version >= 3) return low_bits(15);  // + truncate
  if (version == 2) return low_bits(14);  // + link and rename between directories
  return low_bits(13);
}

// Enters a Landlock domain without any rule, which denies everything that Landlock controls.
// Returns 0 or errno. Applies to this thread and to those that it starts.
int enter_landlock() {
  const long version = ::syscall(kCreateRuleset, nullptr, size_t{0}, kAskVersion);
  if (version < 1) return version < 0 ? errno : ENOSYS;
  LandlockRuleset ruleset;
  ruleset.handled_access_fs = file_rights(version);
  size_t size = sizeof ruleset.handled_access_fs;
  if (version >= 4) {
    ruleset.handled_access_net = low_bits(2);  // bind, connect
    size += sizeof ruleset.handled_access_net;
  }
  if (version >= 6) {
    ruleset.scoped = low_bits(2);  // abstract sockets, signals
    size += sizeof ruleset.scoped;
  }
  const long fd = ::syscall(kCreateRuleset, &ruleset, size, 0U);
  if (fd < 0) return errno;
  const int failed = ::syscall(kRestrictSelf, static_cast<int>(fd), 0U) == 0 ? 0 : errno;
  ::close(fd);
  return failed;
}

// --- the threads of this process

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// Returns the threads' ids; empty if /proc does not provide them.
std::vector<pid_t> threads_in(DIR* tasks) {
  std::vector<pid_t> threads;
  if (!tasks) return threads;
  ::rewinddir(tasks);
  while (const dirent* entry = ::readdir(tasks)) {
    if (const int thread = std::atoi(entry->d_name); thread > 0) threads.push_back(thread);
  }
  // In another PID namespace these numbers would denote other threads.
  if (std::find(threads.begin(), threads.end(), ::gettid()) == threads.end()) threads.clear();
  return threads;
}

// --- seccomp

// Calls that affect only this process, whatever their arguments.
constexpr auto kHarmlessCalls = std::to_array<int>({
    // memory
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mprotect),
    SCMP_SYS(mremap),
    SCMP_SYS(brk),
    // threads and time
    SCMP_SYS(futex),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(getcpu),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(getrusage),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(getrandom),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    // waiting for the parent, sizes of what it sends
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(lseek),
    SCMP_SYS(restart_syscall),
    // its own signals and its exit
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
});

class Filter {
 public:
  // Any other call raises SIGSYS instead of being executed.
  Filter() : context_(::seccomp_init(SCMP_ACT_TRAP)) {}
  ~Filter() {
    if (context_) ::seccomp_release(context_);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  template <class... Conditions>
  void allow(int call, Conditions... conditions) {
    const std::array<scmp_arg_cmp, sizeof...(conditions)> list{conditions...};
    const int failed =
        context_ ? ::seccomp_rule_add_array(context_, SCMP_ACT_ALLOW, call, list.size(), list.data())
                 : -ENOMEM;
    if (failed != 0 && status_ == 0) status_ = failed;
  }

  // Installs the filter for all threads of the process. Returns 0 or errno.
  int load() {
    if (status_ != 0) return -status_;
    // Calls of another architecture (32-bit) use different numbers.
    ::seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    ::seccomp_attr_set(context_, SCMP_FLTATR_CTL_TSYNC, 1);
    // Otherwise kernels before 5.16 disable speculation along with the filter, which slows down
    // every measured kernel.
    ::seccomp_attr_set(context_, SCMP_FLTATR_CTL_SSB, 1);
    // Returns the error of the system call instead of ECANCELED for all errors.
    ::seccomp_attr_set(context_, SCMP_FLTATR_API_SYSRAWRC, 1);
    return -::seccomp_load(context_);
  }

 private:
  scmp_filter_ctx context_;
  int status_ = 0;
};

scmp_arg_cmp argument(unsigned index, scmp_compare compare, uint64_t value) {
  return {index, compare, value, 0};
}
// Compares the lower half of an argument, which the kernel reads as an int.
scmp_arg_cmp integer(unsigned index, int64_t value) {
  return {index, SCMP_CMP_MASKED_EQ, 0xffffffffU, static_cast<uint32_t>(value)};
}

int enter_seccomp(int socket, std::span<const int> readable, const std::vector<pid_t>& threads) {
  Filter filter;
  for (const int call : kHarmlessCalls) filter.allow(call);
  filter.allow(SCMP_SYS(recvmsg), integer(0, socket));
  filter.allow(SCMP_SYS(sendmsg), integer(0, socket));
  // Messages of a failing library; sandbox.cc limits their size.
  filter.allow(SCMP_SYS(write), integer(0, STDERR_FILENO));
  filter.allow(SCMP_SYS(writev), integer(0, STDERR_FILENO));
  int last = socket;
  for (const int file : readable) {
    filter.allow(SCMP_SYS(pread64), integer(0, file));
    last = std::max(last, file);
  }
  // Setting the memory limit of the next candidate.
  filter.allow(SCMP_SYS(prlimit64), integer(0, 0), integer(1, RLIMIT_AS));
  // Closing a task's memory file once it is mapped.
  filter.allow(SCMP_SYS(close), argument(0, SCMP_CMP_GT, last));
  // Advice to release memory; advice values from 100 inject hardware errors.
  filter.allow(SCMP_SYS(madvise), argument(2, SCMP_CMP_LT, 100));
  // abort(); a tgkill of another process is not allowed.
  filter.allow(SCMP_SYS(tgkill), integer(0, ::getpid()));
  // The pool sets the affinity of its threads, and a thread that of itself.
  if (threads.empty()) filter.allow(SCMP_SYS(sched_setaffinity));
  for (const pid_t thread : threads) filter.allow(SCMP_SYS(sched_setaffinity), integer(0, thread));
  if (!threads.empty()) filter.allow(SCMP_SYS(sched_setaffinity), integer(0, 0));
  return filter.load();
}

// Signal handler; async-signal-safe.
void on_forbidden_call(int, siginfo_t* info, void*) {
  char text[kForbiddenCall.size() + 16];
  char* end = std::copy(kForbiddenCall.begin(), kForbiddenCall.end(), text);
  end = std::to_chars(end, text + sizeof text - 1, info->si_syscall).ptr;
  *end++ = '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, end - text);
  ::_exit(kExitForbiddenCall);
}

// Returns why the kernel rejects the filter, since libseccomp reports one error for all problems
// that it finds before it calls the kernel. Passing no filter gives EFAULT if the kernel would
// accept one.
int reason_of_refusal(int libseccomp_error) {
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr, 0, 0) == 0 || errno == EFAULT)
    return libseccomp_error;
  return errno;
}

void add_refusal(std::string& refused, const char* what, int error) {
  if (!refused.empty()) refused += ", ";
  refused += what + std::string(" (") + std::generic_category().message(error) + ")";
}

}  // namespace

std::string confine(int socket, std::span<const int> readable, const std::function<void()>& start_threads) {
  std::string refused;
  if (kSanitized) {
    start_threads();
    return refused;
  }
  Directory tasks(::opendir("/proc/self/task"));  // opened now, since Landlock would deny it
  // No process can attach to this one or read its memory through /proc, and its memory is not in
  // core files.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) add_refusal(refused, "no_new_privs", errno);
  // Entered before the threads start, because they inherit it.
  const int landlock = enter_landlock();
  start_threads();
  struct sigaction action{};
  action.sa_sigaction = on_forbidden_call;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGSYS, &action, nullptr);
  const std::vector<pid_t> threads = threads_in(tasks.get());
  tasks.reset();
  if (const int failed = enter_seccomp(socket, readable, threads)) {
    ::signal(SIGSYS, SIG_DFL);
    add_refusal(refused, "seccomp", reason_of_refusal(failed));
  }
  if (landlock != 0) add_refusal(refused, "Landlock", landlock);
  return refused;
}

std::string describe_forbidden_call(std::string_view printed) {
  std::string reason = "made a system call that is forbidden for candidates";
  const size_t found = printed.rfind(kForbiddenCall);
  if (found == std::string_view::npos) return reason;
  const std::string_view rest = printed.substr(found + kForbiddenCall.size());
  int number = -1;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), number).ec != std::errc()) return reason;
  char* name = ::seccomp_syscall_resolve_num_arch(::seccomp_arch_native(), number);
  reason += name ? std::string(": ") + name : ": number " + std::to_string(number);
  std::free(name);
  return reason;
}

}  // namespace tensorsmith::measure
