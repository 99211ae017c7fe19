#include "runtime/device/cuda_tensor_map.h"

#include <cstdint>
#include <vector>

namespace tensorsmith::runtime::cuda {

namespace {

// Values of CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapL2promotion.
constexpr int kUint8 = 0, kUint16 = 1;
constexpr int kSwizzle32 = 1, kSwizzle64 = 2, kSwizzle128 = 3;
constexpr int kNotInterleaved = 0, kPromoteTo256 = 3, kFillWithZeros = 0;

int swizzle_of(int64_t bytes) { return bytes == 32 ? kSwizzle32 : bytes == 64 ? kSwizzle64 : kSwizzle128; }

int64_t bytes_of(const TensorMap& map) {
  int64_t bytes = map.extents.front() * map.element_bytes;
  for (size_t d = 1; d < map.extents.size(); ++d) bytes += (map.extents[d] - 1) * map.strides[d - 1];
  return bytes;
}

}  // namespace

Result<EncodedMap> encode(CudaShared& shared, const TensorMap& map, const GpuSpan& span) {
  const auto refuse = [&](ErrorCode code, std::string reason) {
    return Error{code, shared.properties.name, std::move(reason)};
  };
  if (const std::string broken = broken_rule(map); !broken.empty())
    return refuse(ErrorCode::kInvalidArgument, broken);
  if (shared.api->encode_tiled == nullptr)
    return refuse(ErrorCode::kUnsupported, "the driver has no tensor maps; install one of CUDA 12 or newer");
  if (bytes_of(map) > span.bytes)
    return refuse(ErrorCode::kInvalidArgument, "a map of " + std::to_string(bytes_of(map)) +
                                                   " bytes does not fit a buffer of " +
                                                   std::to_string(span.bytes));
  const std::vector<uint64_t> extents(map.extents.begin(), map.extents.end());
  const std::vector<uint64_t> strides(map.strides.begin(), map.strides.end());
  const std::vector<uint32_t> box(map.box.begin(), map.box.end()), steps(map.box.size(), 1);
  EncodedMap encoded{};
  const int code = shared.api->encode_tiled(encoded.bytes.data(), map.element_bytes == 1 ? kUint8 : kUint16,
                                            extents.size(), address_of(span), extents.data(), strides.data(),
                                            box.data(), steps.data(), kNotInterleaved,
                                            swizzle_of(map.swizzle_bytes), kPromoteTo256, kFillWithZeros);
  TS_RETURN_IF_ERROR(shared.check(code, "cuTensorMapEncodeTiled"));
  return encoded;
}

}  // namespace tensorsmith::runtime::cuda
