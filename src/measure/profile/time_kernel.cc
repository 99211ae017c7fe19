#include "measure/profile/time_kernel.h"

#include <algorithm>
#include <limits>

#include "codegen/build.h"
#include "measure/profile/child_process.h"
#include "measure/profile/kernel_memory.h"
#include "measure/timing.h"

namespace tensorsmith::measure {
namespace {

constexpr int kLeastReadings = 5, kMostReadings = 40;
constexpr double kEnoughSeconds = 0.08;
// A reading takes at least this long, so that the clock's own time is negligible.
constexpr double kReadingSeconds = 5e-4;

}  // namespace

Result<std::map<std::string, double>> time_kernel(const ir::Workload& workload, const sched::Trace& trace,
                                                  const target::Device& device,
                                                  const codegen::Backend& backend, double most_seconds) {
  TS_ASSIGN_OR_RETURN(const codegen::BuiltKernel built, codegen::build(workload, trace, device, backend, {}));
  TS_ASSIGN_OR_RETURN(const auto loaded, backend.load(built.kernel.object, built.kernel.symbol));
  TS_ASSIGN_OR_RETURN(const auto memory, KernelMemory::create(built.lowered.program, built.kernel));
  return in_child_process(most_seconds, [&] {
    memory->run(loaded->function());
    const double start = thread_seconds();
    memory->run(loaded->function());
    const double first = std::max(thread_seconds() - start, 1e-9);
    const int runs = std::clamp(static_cast<int>(kReadingSeconds / first), 1, 10'000);
    double least = std::numeric_limits<double>::infinity();
    for (int reading = 0; reading < kMostReadings; ++reading) {
      const double before = thread_seconds();
      if (reading >= kLeastReadings && before - start > kEnoughSeconds) break;
      for (int run = 0; run < runs; ++run) memory->run(loaded->function());
      least = std::min(least, (thread_seconds() - before) / runs);
    }
    return std::map<std::string, double>{{"seconds", least}};
  });
}

}  // namespace tensorsmith::measure
