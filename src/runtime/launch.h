// A kernel call on a GPU as plain data: the launches that compute a program, in order. Code
// generation creates it, runtime/device executes it, and compiled models store it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tensorsmith::runtime {

// A buffer as the tensor memory accelerator of NVIDIA's GPUs (from Hopper on) sees it: an array
// from which one instruction copies a box into shared memory. Elements of a box outside the array
// are filled with zeros. The innermost dimension comes first; there are at most five.
struct TensorMap {
  int64_t element_bytes = 2;     // 1 or 2
  std::vector<int64_t> extents;  // elements
  std::vector<int64_t> strides;  // bytes, for all dimensions but the innermost; multiples of 16
  // Elements of a box along each dimension, at most 256. Those along the innermost dimension have
  // swizzle_bytes bytes together.
  std::vector<int64_t> box;
  int64_t swizzle_bytes = 128;  // 32, 64 or 128: period of the swizzle of 16-byte chunks
  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};
// Returns which rule the map breaks, or an empty string.
std::string broken_rule(const TensorMap& map);

// A pointer that a launch receives, or a map of the memory there.
struct LaunchArgument {
  int64_t buffer = -1;  // position among the call's buffers (inputs, then outputs); -1: the workspace
  int64_t workspace_offset = 0;  // offset in the workspace in bytes, a multiple of kBufferAlignment
  std::optional<TensorMap> map = {};
  friend bool operator==(const LaunchArgument&, const LaunchArgument&) = default;
};

// One launch. All its threads see the writes of preceding launches.
struct Launch {
  std::string symbol;                        // symbol of the kernel in its module
  std::array<int64_t, 3> grid = {1, 1, 1};   // blocks (OpenCL: work-groups), x first
  std::array<int64_t, 3> block = {1, 1, 1};  // threads of a block (OpenCL: work-items of a group)
  int64_t shared_bytes = 0;                  // dynamic shared memory, in addition to what the kernel declares
  std::vector<LaunchArgument> arguments;
  friend bool operator==(const Launch&, const Launch&) = default;
};

}  // namespace tensorsmith::runtime
