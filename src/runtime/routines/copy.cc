// Copies a buffer: the state of a loop before its first turn and after each turn, and slices that are not aligned.
//
// Parameters: bytes. Buffers: source, result.
#include <algorithm>
#include <cstring>

#include "runtime/routine.h"
#include "runtime/routines/support.h"

namespace tensorsmith::runtime {

namespace {

constexpr int64_t kMostBytes = 8 * kMostElements;

Result<RoutineDemands> copy_demands(std::span<const int64_t> parameters) {
  ParameterReader read(parameters);
  const int64_t bytes = read.between(0, kMostBytes);
  TS_RETURN_IF_ERROR(read.finish());
  RoutineDemands demands;
  demands.buffer_bytes = {bytes, bytes};
  demands.outputs = 1;
  demands.operations = static_cast<double>(bytes) / 32;  // a vector at a time
  return demands;
}

Status run_copy(const TensorsmithKernelContext& context, std::span<const int64_t> parameters,
                void* const* buffers) {
  constexpr int64_t kBlock = 4096;
  const int64_t bytes = parameters[0];
  const auto* from = static_cast<const char*>(buffers[0]);
  auto* to = static_cast<char*>(buffers[1]);
  parallel(context, (bytes + kBlock - 1) / kBlock, bytes / 32.0, [&](int64_t begin, int64_t end, int) {
    const int64_t first = begin * kBlock;
    std::memcpy(to + first, from + first, std::min(end * kBlock, bytes) - first);
  });
  return {};
}

}  // namespace

const Routine kCopy = {"copy", copy_demands, run_copy};

RoutineCall copy_call(int64_t bytes) { return {std::string(kCopy.name), {bytes}}; }

}  // namespace tensorsmith::runtime
