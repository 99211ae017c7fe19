// Chosen schedules -> a compiled model directory.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "sched/step.h"
#include "target/target.h"
#include "tools/kernel_cache.h"
#include "tools/model_pipeline.h"
#include "tools/options.h"

namespace tensorsmith::tools {

// How one task is to run.
struct TaskSchedule {
  sched::Trace trace;
  double measured_seconds = 0;  // 0 = not measured
};

// Whether a compiled model can be written there, before long work starts: the parent can be made and written,
// and what is there already may be replaced (runtime::check_replaceable).
Status check_output_directory(const std::string& directory);

// The untuned schedule of every task.
Result<std::vector<TaskSchedule>> default_schedules(const graph::Partition& partition,
                                                    const target::Device& device,
                                                    const ScheduleOptions& schedule_options = {});

struct CompileOptions {
  std::string directory;
  std::string model_name;
  bool tuned = false;
  int jobs = 1;                  // kernels compiled at a time
  KernelCache* cache = nullptr;  // may be null; of this model and device
  // Asked between kernels: true ends the compilation with kCancelled, before anything is written. May be
  // null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Compiles each task, packs the weights, writes the directory (all of it or nothing). schedules: by task.
Status compile_model(const LoadedModel& model, const target::Device& device,
                     const std::vector<TaskSchedule>& schedules, const CompileOptions& options);

}  // namespace tensorsmith::tools
