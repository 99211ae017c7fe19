// Runs of a model as a timeline that browsers show (chrome://tracing, Perfetto).
#pragma once

#include <string>

#include "runtime/model.h"

namespace tensorsmith::tools {

// Runs the model `runs` times after one that does not count, and returns JSON in Chrome's trace event format: an event a
// run, and in it one a kernel call, with its task, floating-point operations and speed. Kernels run one after the other; what
// a run takes besides (between kernels, copies of unaligned inputs) stands at its end. model: loaded with profile. Errors:
// those of Model::run.
Result<std::string> chrome_trace(runtime::Model& model, int runs, uint64_t seed);

}  // namespace tensorsmith::tools
