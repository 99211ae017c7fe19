// Routines: functions of this library that a compiled model calls in place of a kernel, for what no loop nest over
// independent elements does well: sorting and selection, updates in place, prefix sums.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::runtime {

// A routine with its parameters, whose meaning is described in routines/NAME.cc.
struct RoutineCall {
  std::string name;
  std::vector<int64_t> parameters;

  friend bool operator==(const RoutineCall&, const RoutineCall&) = default;
};

// The buffers and memory that a routine demands for some parameters.
struct RoutineDemands {
  std::vector<int64_t> buffer_bytes;  // inputs, then outputs
  size_t outputs = 0;
  int64_t shared_bytes = 0, thread_bytes = 0;  // workspaces, as in TensorsmithKernelContext
  double operations = 0;                       // element operations, for reports and predictions
};

struct Routine {
  std::string_view name;
  // Parameters may come from a damaged file. The error is their fault, without a place.
  Result<RoutineDemands> (*demands)(std::span<const int64_t> parameters);
  // The parameters are checked, the buffers are as demanded and do not overlap. Errors: contents of the inputs
  // for which the result is not defined (kInvalidArgument); then the outputs have unspecified contents.
  Status (*run)(const TensorsmithKernelContext& context, std::span<const int64_t> parameters,
                void* const* buffers);
};

// Returns null for an unknown name.
const Routine* find_routine(std::string_view name);
// Returns the demands of a call. Errors: kCorrupt for an unknown routine or impossible parameters.
Result<RoutineDemands> demands_of(const RoutineCall& call);

// One row each; the names are used by the compiler.
extern const Routine kCopy, kRefuse, kScatterElements, kScatterRows, kPrefixScan, kTopK;

// Returns the call that copies this many bytes from its only input to its only output.
RoutineCall copy_call(int64_t bytes);
// Returns the call that fails: for a branch that cannot run with the model's shapes.
RoutineCall refuse_call();

// The operation that combines an element with an update; kNone replaces the element.
enum class ScatterReduction : uint8_t { kNone, kAdd, kMul, kMin, kMax };

}  // namespace tensorsmith::runtime
