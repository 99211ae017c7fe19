// Maps of the tensor memory accelerator, as kernels get them.
#pragma once

#include <array>
#include <cstddef>

#include "base/result.h"
#include "runtime/device/cuda_sequence.h"
#include "runtime/launch.h"

namespace tensorsmith::runtime::cuda {

// CUtensorMap, a parameter of a kernel by value.
struct alignas(64) EncodedMap {
  std::array<std::byte, 128> bytes;
};

// kUnsupported: the driver has no such maps; kInvalidArgument: what the map describes is larger than the span, or the
// driver refuses it.
Result<EncodedMap> encode(CudaShared& shared, const TensorMap& map, const GpuSpan& span);

}  // namespace tensorsmith::runtime::cuda
