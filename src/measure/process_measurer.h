// The loop shared by all measurers: candidates are built ahead on threads of this process and run
// one after another in a worker process.
#pragma once

#include <memory>

#include "measure/build_pipeline.h"
#include "measure/disturbance.h"
#include "measure/measurer.h"
#include "measure/prepared_tasks.h"
#include "measure/worker_host.h"

namespace tensorsmith::measure {

struct ProcessMeasurerOptions {
  std::vector<std::string> worker;  // command that runs candidates
  bool keep_spare = false;          // see WorkerHost
  // Command that runs reference programs; empty: `worker` runs them.
  std::vector<std::string> reference_worker;
  std::shared_ptr<const Builder> reference_builder;
  InputValues values = InputValues::kUniform;
  int task_threads = 1;  // threads of a task's programs
  int build_threads = 1;
  bool exclusive = false;  // nothing is built while a candidate runs
  int64_t flush_bytes = 0;
  ReadLoad load = {};  // of the processors that the candidates run on; empty: results have no disturbance
};

class ProcessMeasurer final : public Measurer {
 public:
  ProcessMeasurer(const MeasureOptions& options, ProcessMeasurerOptions how,
                  std::shared_ptr<const Builder> builder, LogSink& log);

  Result<std::vector<record::MeasureResult>> measure(const ir::Workload& workload,
                                                     std::span<const MeasureRequest> candidates,
                                                     double best_seconds_so_far, const Done& done) override;

  // kResourceExhausted: the system provides no thread for builds; else as
  // WorkerHost::ensure_worker().
  Status ensure_ready();

 private:
  // Runs a candidate. A stop by a reading that only its end showed to be disturbed is not kept: the
  // candidate runs again.
  Result<record::MeasureResult> run(const PreparedTask& task, const BuiltCandidate& built, double best);

  MeasureOptions options_;
  ProcessMeasurerOptions how_;
  WorkerHost worker_;
  std::unique_ptr<WorkerHost> reference_worker_;  // null: worker_ runs them
  // Builder for the device; null if a single worker runs everything.
  std::shared_ptr<const Builder> device_builder_;
  PreparedTasks tasks_;
  BuildPipeline pipeline_;
  DisturbanceMeter meter_;
};

// Rejects options that no measurer supports: kInvalidArgument with the option's name.
Status check_options(const MeasureOptions& options, const std::vector<std::string>& worker_command);

}  // namespace tensorsmith::measure
