// Chosen schedules -> a compiled model directory.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sinks.h"
#include "engine/kernel_cache.h"
#include "engine/load_model.h"
#include "engine/packed_weights.h"
#include "engine/schedules.h"
#include "engine/speedup.h"
#include "runtime/model.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Whether a compiled model can be written there, before long work starts: the parent can be made and written,
// and what is there already may be replaced (runtime::check_replaceable).
Status check_output_directory(const std::string& directory);

// What was built for one model, so that several compilations of it share it.
struct BuildCache {
  explicit BuildCache(const codegen::Backend& backend = codegen::default_backend(),
                      const std::string& symbol_prefix = "task_")
      : kernels(backend, symbol_prefix) {}
  KernelCache kernels;
  PackedWeights weights;
};

struct CompileOptions {
  std::string directory;
  std::string model_name;
  bool tuned = false;
  // What the run that tuned the model found; the compiled model keeps it.
  std::optional<Speedup> speedup = std::nullopt;
  Estimate estimate = {};
  int jobs = 1;                               // kernels compiled at a time
  const codegen::Backend* backend = nullptr;  // null: the one for the device
  BuildCache* cache = nullptr;                // may be null; of this model, device and backend
  // Not empty: C sources with names of this prefix (engine/c_model.h: check_c_prefix) instead of a compiled model; no
  // backend is asked.
  std::string c_prefix;
  // Told what could not be built where another schedule took its place. May be null.
  LogSink* log = nullptr;
  // Asked between kernels: true ends the compilation with kCancelled, before anything is written. May be
  // null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Compiles each task, packs the weights, writes the directory (all of it or nothing). schedules: by task.
Status compile_model(const LoadedModel& model, const target::Device& device,
                     const std::vector<TaskSchedule>& schedules, const CompileOptions& options);

// A compiled model without files. Its weights are those of the cache that it was made with, which outlives it.
struct ModelInMemory {
  std::vector<std::unique_ptr<codegen::LoadedKernel>> kernels;  // by task
  std::unique_ptr<runtime::Model> model;
};
// options: with a cache; what concerns files is not looked at.
Result<ModelInMemory> compile_in_memory(const LoadedModel& model, const target::Device& device,
                                        const std::vector<TaskSchedule>& schedules,
                                        const CompileOptions& options,
                                        const runtime::LoadOptions& load_options);

}  // namespace tensorsmith::engine
