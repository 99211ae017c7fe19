// Builds code from a schedule's trace. Measured kernels and shipped kernels both take this path.
#pragma once

#include "codegen/backend.h"
#include "ir/workload.h"
#include "lower/lower.h"
#include "sched/step.h"

namespace tensorsmith::codegen {

struct BuiltKernel {
  lower::LoweredProgram lowered;
  CompiledKernel kernel;
};

enum class BuildStep { kReplay, kLower, kCompile };

// Replays the trace, lowers the schedule and compiles the program, which gets the symbol's name.
// Returns the error of the step that failed. If `step` is given, it receives the last step begun,
// whether the build succeeds or not.
Result<BuiltKernel> build(const ir::Workload& workload, const sched::Trace& trace,
                          const target::Device& device, const Backend& backend, const CodegenOptions& options,
                          BuildStep* step = nullptr);

}  // namespace tensorsmith::codegen
