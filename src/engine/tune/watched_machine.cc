#include "engine/tune/watched_machine.h"

#include <chrono>
#include <thread>

#include "engine/device/gpu_device.h"
#include "ir/expr.h"
#include "measure/device_measurer.h"
#include "space/design_space.h"

namespace tensorsmith::engine {

namespace {

// 33.6 MFLOP: long enough to be timed well, and negligible beside a round of measurements.
ir::Workload canary_workload() {
  constexpr int64_t kExtent = 256;
  const ir::OperationRef a = ir::placeholder("A", ir::DType::kF32, {kExtent, kExtent});
  const ir::OperationRef b = ir::placeholder("B", ir::DType::kF32, {kExtent, kExtent}, true);
  const ir::Var i("i"), j("j"), k("k");
  const ir::OperationRef c =
      ir::compute("C", {{i, kExtent}, {j, kExtent}}, {{k, kExtent}}, ir::Combiner::kSum,
                  {ir::load(a->output(), {i, k}) * ir::load(b->output(), {k, j})});
  return {{a, b, c}, {c->output()}};
}

}  // namespace

Result<std::unique_ptr<measure::Measurer>> make_watched_measurer(const target::Device& device,
                                                                 const measure::MeasureOptions& options,
                                                                 const std::vector<std::string>& worker,
                                                                 const Clock& clock, LogSink& log,
                                                                 const std::atomic<bool>& cancel) {
  // The worker of a GPU has a canary of its own, and other programs on this machine do not disturb
  // the GPU's times.
  if (const auto place = gpu_place(device)) {
    measure::MeasureOptions on_device = options;
    TS_ASSIGN_OR_RETURN(on_device.backend, codegen::backend_for(device));
    return measure::make_device_measurer(device, {*place, ""}, on_device, worker, log);
  }
  TS_ASSIGN_OR_RETURN(auto measurer, measure::make_local_measurer(device, options, worker, log));
  TS_ASSIGN_OR_RETURN(auto canary, make_machine_canary(device, options, worker, log));
  const auto sleep = [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  return std::unique_ptr<measure::Measurer>(std::make_unique<measure::WatchedMeasurer>(
      std::move(measurer), std::move(canary), measure::WatchOptions(), clock, sleep, log, cancel));
}

Result<measure::Canary> make_machine_canary(const target::Device& device,
                                            const measure::MeasureOptions& options,
                                            const std::vector<std::string>& worker, LogSink& log) {
  if (gpu_place(device)) return measure::Canary();
  measure::MeasureOptions canary_options = options;
  canary_options.build_threads = 1;
  canary_options.flush_cache = false;
  TS_ASSIGN_OR_RETURN(std::shared_ptr<measure::Measurer> measurer,
                      measure::make_local_measurer(device, canary_options, worker, log));
  ir::Workload workload = canary_workload();
  TS_ASSIGN_OR_RETURN(const auto space, space::DesignSpace::build(workload, device, {}));
  TS_ASSIGN_OR_RETURN(sched::Trace trace, space.to_trace(space.default_candidate()));
  return measure::make_canary(std::move(measurer), std::move(workload), std::move(trace));
}

}  // namespace tensorsmith::engine
