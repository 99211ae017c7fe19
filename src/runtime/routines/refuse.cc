// Fails: in place of a branch that cannot run with the shapes that the model was compiled for. No parameters, no buffers.
#include "runtime/routine.h"
#include "runtime/routines/support.h"

namespace tensorsmith::runtime {

namespace {

Result<RoutineDemands> refusal_demands(std::span<const int64_t> parameters) {
  TS_RETURN_IF_ERROR(ParameterReader(parameters).finish());
  return RoutineDemands();
}

Status run_refusal(const TensorsmithKernelContext&, std::span<const int64_t>, void* const*) {
  return Error{
      ErrorCode::kInvalidArgument, "",
      "the inputs lead to a branch of the model that cannot run with the shapes it was compiled for"};
}

}  // namespace

const Routine kRefuse = {"refuse", refusal_demands, run_refusal};

RoutineCall refuse_call() { return {std::string(kRefuse.name), {}}; }

}  // namespace tensorsmith::runtime
