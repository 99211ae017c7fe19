// Candidates that try to escape from the worker: each fails with a reason and has no effect, and
// the next candidate is measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "doubles.h"
#include "measure/task_data.h"

namespace tensorsmith::measure::escape_test {
namespace {

using record::MeasureResult;
using record::Outcome;

const std::string kForbidden = "made a system call that is forbidden for candidates";

// The same path as in escapes.c.
std::string escaped_file(pid_t parent) { return "/tmp/tensorsmith-escape-" + std::to_string(parent); }
bool exists(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

class WarningSink final : public LogSink {
 public:
  void log(LogLevel level, std::string_view message) override {
    if (level >= LogLevel::kWarning) lines.emplace_back(message);
  }
  std::vector<std::string> lines;
};

MeasureOptions test_options() {
  MeasureOptions options;
  options.run_timeout_s = 5;
  options.memory_limit_bytes = int64_t{256} << 20;
  return options;
}

std::vector<MeasureResult> measure(const std::vector<std::string>& names, LogSink& log) {
  auto made = make_local_measurer(test_device(), test_options(), {TEST_WORKER}, log,
                                  std::make_shared<DoubleBuilder>());
  EXPECT_TRUE(made.ok()) << made.error().message();
  if (!made.ok()) return {};
  std::vector<MeasureRequest> candidates;
  for (const auto& name : names) candidates.push_back(DoubleBuilder::candidate(name));
  auto results = (*made)->measure(matmul16(), candidates, 0, nullptr);
  EXPECT_TRUE(results.ok()) << results.error().message();
  return results.ok() ? *results : std::vector<MeasureResult>(names.size());
}

TEST(Escape, EveryAttemptFailsItsCandidateOnly) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> attempts = {
      {"opens_file", {"open", "openat"}},
      {"writes_file", {"open", "openat"}},
      {"removes_file", {"unlink", "unlinkat"}},
      {"makes_directory", {"mkdir", "mkdirat"}},
      {"looks_for_file", {"access", "faccessat"}},
      {"reads_proc", {"open", "openat"}},
      {"makes_socket", {"socket"}},
      {"makes_pipe", {"pipe", "pipe2"}},
      {"makes_memory_file", {"memfd_create"}},
      {"makes_ring", {"io_uring_setup"}},
      {"forks_process", {"fork", "clone", "clone3"}},
      {"executes_program", {"execve"}},
      {"starts_a_thread", {""}},
      {"traces_parent", {"ptrace"}},
      {"kills_parent", {"kill"}},
      {"signals_parents_thread", {"tgkill"}},
      {"reads_parents_memory", {"process_vm_readv"}},
      {"moves_the_parent", {"sched_setaffinity"}},
      {"limits_the_parent", {"prlimit64"}},
      {"changes_root", {"chroot"}},
      {"outlives_parent", {"prctl"}},
      {"becomes_dumpable", {"prctl"}},
      {"poisons_memory", {"madvise"}},
      {"closes_socket", {"close"}}};
  const std::string trace = escaped_file(::getpid());
  std::ofstream(trace) << "to be removed";
  WarningSink log;
  std::vector<std::string> names{"right"};
  for (const auto& [name, calls] : attempts) {
    names.push_back(name);
    names.emplace_back("right");
  }
  const auto results = measure(names, log);
  EXPECT_TRUE(results[0].ok()) << results[0].reason;
  for (size_t i = 0; i < attempts.size(); ++i) {
    const auto& [name, calls] = attempts[i];
    SCOPED_TRACE(name);
    const MeasureResult& attempt = results[2 * i + 1];
    EXPECT_EQ(attempt.outcome, Outcome::kCrash);
    std::vector<std::string> reasons;
    for (const auto& call : calls) reasons.push_back(kForbidden + (call.empty() ? "" : ": ") + call);
    EXPECT_THAT(reasons, ::testing::Contains(attempt.reason));
    EXPECT_TRUE(results[2 * i + 2].ok()) << results[2 * i + 2].reason;
  }
  std::ifstream file(trace);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "to be removed");
  ::unlink(trace.c_str());
  rlimit limit{};
  ::getrlimit(RLIMIT_CPU, &limit);
  EXPECT_EQ(limit.rlim_cur, RLIM_INFINITY);
  EXPECT_TRUE(children_of(::getpid()).empty());
  EXPECT_THAT(log.lines, ::testing::IsEmpty());
}

TEST(Escape, CallsOfAnotherArchitectureEndTheWorker) {
  NullLogSink log;
  const auto results = measure({"other_architecture", "right"}, log);
  EXPECT_EQ(results[0].outcome, Outcome::kCrash);
  EXPECT_TRUE(results[1].ok());
}

TEST(Escape, TheEnvironmentIsWiped) {
  ASSERT_EQ(::setenv("TENSORSMITH_TEST_TOKEN", "secret", 1), 0);
  NullLogSink log;
  const auto results = measure({"finds_environment"}, log);
  EXPECT_TRUE(results[0].ok()) << results[0].reason;
  ::unsetenv("TENSORSMITH_TEST_TOKEN");
}

// Uses the program's own worker and loader, with an object like those of code generation.
TEST(Escape, AKernelOfTheProgramsOwnWorkerGetsNoFurther) {
  class RawBuilder final : public Builder {
   public:
    BuildResult build(const ir::Workload& workload, const sched::Trace& trace) const override {
      const auto inner = make_builder(*target::probe_local(), codegen::default_backend());
      if (trace.steps.empty()) return inner->build(workload, trace);
      std::ifstream file(RAW_ESCAPE, std::ios::binary);
      BuiltCandidate built;
      built.kernel.symbol = "raw_escape";
      built.kernel.object.assign(std::istreambuf_iterator<char>(file), {});
      return built;
    }
  };
  NullLogSink log;
  auto made = make_local_measurer(test_device(), test_options(), {WORKER_PROGRAM}, log,
                                  std::make_shared<RawBuilder>());
  ASSERT_TRUE(made.ok()) << made.error().message();
  const std::vector<MeasureRequest> candidates{{}, DoubleBuilder::candidate("right"), {}};
  const auto results = (*made)->measure(matmul16(), candidates, 0, nullptr);
  ASSERT_TRUE(results.ok()) << results.error().message();
  EXPECT_TRUE((*results)[0].ok()) << (*results)[0].reason;
  EXPECT_EQ((*results)[1].outcome, Outcome::kCrash);
  EXPECT_EQ((*results)[1].reason, kForbidden + ": openat");
  EXPECT_TRUE((*results)[2].ok()) << (*results)[2].reason;
}

// Runs `check` in a process of its own whose kernel refuses calls, as policies of containers do.
// Returns 0 if the check passed.
int in_refusing_process(const std::vector<std::pair<int, int>>& refused, bool refuse_filters,
                        const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_ALLOW);
    for (const auto& [call, error] : refused)
      ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(static_cast<uint16_t>(error)), call, 0);
    if (refuse_filters) {
      ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(seccomp), 0);
      ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prctl), 1,
                         SCMP_A0_32(SCMP_CMP_EQ, PR_SET_SECCOMP));
    }
    if (::seccomp_load(filter) != 0) ::_exit(9);
    const bool good = check() && !::testing::Test::HasFailure();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr int kLandlock = 444;

TEST(Escape, OneLineSaysWhatTheKernelRefuses) {
  // Without seccomp and Landlock, measuring continues.
  EXPECT_EQ(0, in_refusing_process({{kLandlock, ENOSYS}}, true, [] {
              WarningSink log;
              const auto results = measure({"right", "segfaults", "right", "aborts", "right"}, log);
              EXPECT_EQ(
                  log.lines,
                  std::vector<std::string>{
                      "the operating system does not support a part of the sandbox for candidates: seccomp "
                      "(Operation not permitted), Landlock (Function not implemented); "
                      "measuring continues with the other parts"});
              return results[0].ok() && results[2].ok() && results[4].ok();
            }));
  // Without Landlock alone, candidates still cannot write files.
  EXPECT_EQ(0, in_refusing_process({{kLandlock, EOPNOTSUPP}}, false, [] {
              WarningSink log;
              const auto results = measure({"writes_file", "right"}, log);
              EXPECT_EQ(log.lines.size(), 1u);
              EXPECT_FALSE(exists(escaped_file(::getpid())));
              return results[0].outcome == Outcome::kCrash && results[1].ok();
            }));
}

TEST(Escape, LandlockAloneDeniesFiles) {
  EXPECT_EQ(0, in_refusing_process({}, true, [] {
              WarningSink log;
              const auto results = measure({"writes_file", "makes_directory", "right"}, log);
              EXPECT_EQ(log.lines.size(), 1u);
              EXPECT_FALSE(exists(escaped_file(::getpid())));
              return results[2].ok();
            }));
}

TEST(Escape, NoThreadsAreAClearError) {
  // Threads are refused, processes are not.
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_ALLOW);
    ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    constexpr uint64_t kThread = 0x00010000;  // CLONE_THREAD
    ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAGAIN), SCMP_SYS(clone), 1,
                       SCMP_A0(SCMP_CMP_MASKED_EQ, kThread, kThread));
    if (::seccomp_load(filter) != 0) ::_exit(9);
    NullLogSink log;
    const auto made = make_local_measurer(test_device(), test_options(), {TEST_WORKER}, log,
                                          std::make_shared<DoubleBuilder>());
    ::_exit(!made.ok() && made.error().reason.find("ulimit -u") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A worker that finds a descriptor of the task cannot change the expected outputs.
TEST(Escape, ExpectedOutputsAreSealed) {
  const ir::Workload workload = matmul16();
  auto data = TaskData::create(workload, random_inputs(workload, 1), 1 << 20, 1);
  ASSERT_TRUE(data.ok());
  const auto bytes = static_cast<size_t>((*data)->spec().memory_bytes);
  (*data)->seal();
  EXPECT_EQ(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (*data)->fd(), 0), MAP_FAILED);
  EXPECT_EQ(::pwrite((*data)->fd(), "x", 1, 0), -1);
  void* read_only = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, (*data)->fd(), 0);
  ASSERT_NE(read_only, MAP_FAILED);
  EXPECT_NE(::mprotect(read_only, bytes, PROT_READ | PROT_WRITE), 0);
  ::munmap(read_only, bytes);
}

}  // namespace
}  // namespace tensorsmith::measure::escape_test
