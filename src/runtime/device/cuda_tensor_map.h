// Maps of the tensor memory accelerator in the form that kernels receive.
#pragma once

#include <array>
#include <cstddef>

#include "base/result.h"
#include "runtime/device/cuda_sequence.h"
#include "runtime/launch.h"

namespace tensorsmith::runtime::cuda {

// A CUtensorMap, which kernels take as a parameter by value.
struct alignas(64) EncodedMap {
  std::array<std::byte, 128> bytes;
};

// Errors: kUnsupported if the driver has no such maps; kInvalidArgument if the map describes more
// than the span, or if the driver rejects it.
Result<EncodedMap> encode(CudaShared& shared, const TensorMap& map, const GpuSpan& span);

}  // namespace tensorsmith::runtime::cuda
