// From a schedule's trace to code, the one way for what is measured and what is shipped.
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

// replay -> lower -> compile; the program has the symbol's name. Errors are those of the step that failed. `step`, if
// given, is the last one begun, whatever ends it.
Result<BuiltKernel> build(const ir::Workload& workload, const sched::Trace& trace,
                          const target::Device& device, const Backend& backend, const CodegenOptions& options,
                          BuildStep* step = nullptr);

}  // namespace tensorsmith::codegen
