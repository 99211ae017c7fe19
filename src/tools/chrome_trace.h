// Writes the runs of a model as a timeline for chrome://tracing or Perfetto.
#pragma once

#include <string>

#include "runtime/model.h"

namespace tensorsmith::tools {

// Runs the model `runs` times after an uncounted warm-up run, and returns JSON in Chrome's trace
// event format: one event per run and, inside it, one per kernel call, with its task,
// floating-point operations and rate. Kernels are shown one after another; the rest of a run (gaps
// between kernels, copies of unaligned inputs) is shown at its end. The model must be loaded for
// profiling. Errors: those of Model::run.
Result<std::string> chrome_trace(runtime::Model& model, int runs, uint64_t seed);

}  // namespace tensorsmith::tools
