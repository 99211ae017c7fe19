// Compiles a model with chosen schedules into a compiled model directory.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sinks.h"
#include "engine/model/kernel_cache.h"
#include "engine/model/load_model.h"
#include "engine/model/packed_weights.h"
#include "engine/report/speedup.h"
#include "engine/tune/schedules.h"
#include "runtime/model.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Checks before long work that a compiled model can be written to `directory`: its parent exists
// (kNotFound) and can be written, and any existing content may be replaced
// (runtime::check_replaceable). With `makes_parent`, the parent may be missing, since it is made with
// the model, and the parent's own parent must exist.
Status check_output_directory(const std::string& directory, bool makes_parent = false);

// Kernels and packed weights of one model, shared by several compilations of it.
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
  // Result of the run that tuned the model; stored in the compiled model.
  std::optional<Speedup> speedup = std::nullopt;
  Estimate estimate = {};
  int jobs = 1;                               // kernels compiled at a time
  const codegen::Backend* backend = nullptr;  // null: the default backend of the device
  BuildCache* cache = nullptr;                // must be of this model, device and backend; may be null
  // If not empty, writes C sources with this name prefix (engine/model/c_model.h: check_c_prefix) instead
  // of a compiled model, without using a backend.
  std::string c_prefix;
  // Receives a message for each schedule that could not be built and was replaced by another. May
  // be null.
  LogSink* log = nullptr;
  // Checked between kernels: true ends the compilation with kCancelled before anything is written.
  // May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Compiles each task, packs the weights and writes the directory, all of it or nothing. `schedules`
// is indexed by task.
Status compile_model(const LoadedModel& model, const target::Device& device,
                     const std::vector<TaskSchedule>& schedules, const CompileOptions& options);

// Calls compile_model() with the best records of `database` (apply_best_records), and with untuned
// schedules for tasks that have no record or if `database` is empty. Sets options.tuned; options.log
// must not be null. Returns the number of tasks with records.
Result<size_t> compile_recorded(const LoadedModel& model, const target::Device& device,
                                const std::string& database, const ScheduleOptions& allowed,
                                CompileOptions options);

// A compiled model without files. Its weights belong to the cache that it was compiled with, which
// must outlive it.
struct ModelInMemory {
  std::vector<std::unique_ptr<codegen::LoadedKernel>> kernels;  // by task
  std::unique_ptr<runtime::Model> model;
};
// options.cache must be set; the options about files are ignored.
Result<ModelInMemory> compile_in_memory(const LoadedModel& model, const target::Device& device,
                                        const std::vector<TaskSchedule>& schedules,
                                        const CompileOptions& options,
                                        const runtime::LoadOptions& load_options);

}  // namespace tensorsmith::engine
