#include "measure/profile/perf_events.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "codegen/build.h"
#include "measure/profile/child_process.h"
#include "measure/profile/kernel_memory.h"

namespace tensorsmith::measure {
namespace {

struct Event {
  const char* name;
  uint32_t type;
  uint64_t config;
};
constexpr uint64_t read_misses(uint64_t cache) {
  return cache | (PERF_COUNT_HW_CACHE_OP_READ << 8U) | (uint64_t{PERF_COUNT_HW_CACHE_RESULT_MISS} << 16U);
}
constexpr std::array kEvents = {
    Event{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    Event{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    Event{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    Event{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    Event{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    Event{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    Event{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, read_misses(PERF_COUNT_HW_CACHE_L1D)},
    Event{"LLC-load-misses", PERF_TYPE_HW_CACHE, read_misses(PERF_COUNT_HW_CACHE_LL)},
    Event{"dTLB-load-misses", PERF_TYPE_HW_CACHE, read_misses(PERF_COUNT_HW_CACHE_DTLB)},
};
constexpr int kRuns = 3;  // of each event; the least count is used, because interrupts only add to it

// Opens a disabled user-space counter of this thread; -1 with errno on failure.
int open_event(const Event& event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return ::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
}

double count(int event, KernelMemory& memory, TensorsmithKernel function) {
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    uint64_t value = 0;
    ::ioctl(event, PERF_EVENT_IOC_RESET, 0);
    ::ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    memory.run(function);
    ::ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    if (::read(event, &value, sizeof value) != sizeof value) return -1;
    least = std::min(least, static_cast<double>(value));
  }
  return least;
}

}  // namespace

Status check_perf_events() {
  const int event = open_event(kEvents[0]);
  if (event >= 0) {
    ::close(event);
    return {};
  }
  const int code = errno;
  const bool denied = code == EACCES || code == EPERM;
  return Error{
      ErrorCode::kUnsupported, "perf_event_open",
      std::string(
          denied
              ? "is not allowed here (see /proc/sys/kernel/perf_event_paranoid)"
              : "this machine gives no access to hardware counters, which is common for virtual machines") +
          ": " + std::strerror(code)};
}

Result<std::map<std::string, double>> count_events(const ir::Workload& workload, const sched::Trace& trace,
                                                   const target::Device& device,
                                                   const codegen::Backend& backend, double most_seconds) {
  TS_RETURN_IF_ERROR(check_perf_events());
  TS_ASSIGN_OR_RETURN(const codegen::BuiltKernel built, codegen::build(workload, trace, device, backend, {}));
  TS_ASSIGN_OR_RETURN(const auto loaded, backend.load(built.kernel.object, built.kernel.symbol));
  TS_ASSIGN_OR_RETURN(const auto memory, KernelMemory::create(built.lowered.program, built.kernel));
  return in_child_process(most_seconds, [&] {
    std::map<std::string, double> counters;
    memory->run(loaded->function());
    // Counts one event at a time: a processor has few counters, and multiplexed counts would have
    // to be scaled.
    for (const Event& event : kEvents) {
      const int opened = open_event(event);
      if (opened < 0) continue;
      if (const double value = count(opened, *memory, loaded->function()); value >= 0)
        counters[event.name] = value;
      ::close(opened);
    }
    return counters;
  });
}

}  // namespace tensorsmith::measure
