// Chosen schedules -> a compiled model directory.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/sinks.h"
#include "engine/kernel_cache.h"
#include "engine/load_model.h"
#include "engine/schedules.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Whether a compiled model can be written there, before long work starts: the parent can be made and written,
// and what is there already may be replaced (runtime::check_replaceable).
Status check_output_directory(const std::string& directory);

struct CompileOptions {
  std::string directory;
  std::string model_name;
  bool tuned = false;
  int jobs = 1;                                                   // kernels compiled at a time
  const codegen::Backend* backend = &codegen::default_backend();  // never null
  KernelCache* cache = nullptr;  // may be null; of this model, device and backend
  bool as_c = false;  // C sources (engine/c_model.h) instead of a compiled model; no backend is asked
  // Told what could not be built where another schedule took its place. May be null.
  LogSink* log = nullptr;
  // Asked between kernels: true ends the compilation with kCancelled, before anything is written. May be
  // null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Compiles each task, packs the weights, writes the directory (all of it or nothing). schedules: by task.
Status compile_model(const LoadedModel& model, const target::Device& device,
                     const std::vector<TaskSchedule>& schedules, const CompileOptions& options);

}  // namespace tensorsmith::engine
