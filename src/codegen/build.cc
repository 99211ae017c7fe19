#include "codegen/build.h"

namespace tensorsmith::codegen {

Result<BuiltKernel> build(const ir::Workload& workload, const sched::Trace& trace,
                          const target::Device& device, const Backend& backend, const CodegenOptions& options,
                          BuildStep* step) {
  BuildStep ignored{};
  BuildStep& now = step != nullptr ? *step : ignored;
  BuiltKernel built;
  now = BuildStep::kReplay;
  TS_ASSIGN_OR_RETURN(const sched::Schedule schedule, sched::replay(workload, trace));
  now = BuildStep::kLower;
  TS_ASSIGN_OR_RETURN(built.lowered, lower::lower(schedule, options.symbol));
  now = BuildStep::kCompile;
  TS_ASSIGN_OR_RETURN(built.kernel, backend.compile(built.lowered.program, device, options));
  return built;
}

}  // namespace tensorsmith::codegen
