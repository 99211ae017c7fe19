// What one kernel call of a GPU is, as plain data: the launches that compute a program, in order. Code generation makes
// it, whoever runs kernels on a device (runtime/device) executes it, compiled models store it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tensorsmith::runtime {

// A buffer as the tensor memory accelerator of NVIDIA's GPUs sees it (from Hopper on): an array of which one instruction
// copies a box into shared memory. Elements of a box that are outside of the array arrive as zeros. Innermost dimensions
// first, at most five.
struct TensorMap {
  int64_t element_bytes = 2;     // 1 or 2
  std::vector<int64_t> extents;  // elements
  std::vector<int64_t> strides;  // bytes, of all dimensions but the innermost; multiples of 16
  std::vector<int64_t> box;      // elements, 256 at most; the innermost's are swizzle_bytes
  int64_t swizzle_bytes = 128;   // 32, 64 or 128: how 16-byte chunks are exchanged between lines of the box
  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};
// What is wrong with it, or nothing.
std::string broken_rule(const TensorMap& map);

// A pointer that a launch gets, or a map of what is there.
struct LaunchArgument {
  int64_t buffer = -1;  // position among the call's buffers (inputs, then outputs); -1: the workspace
  int64_t workspace_offset = 0;  // of the workspace: bytes from its beginning, a multiple of kBufferAlignment
  std::optional<TensorMap> map = {};
  friend bool operator==(const LaunchArgument&, const LaunchArgument&) = default;
};

// One launch. All threads of a launch see what the launches before it wrote.
struct Launch {
  std::string symbol;                        // of the kernel in its module
  std::array<int64_t, 3> grid = {1, 1, 1};   // blocks (OpenCL: work-groups), x first
  std::array<int64_t, 3> block = {1, 1, 1};  // threads of a block (OpenCL: work-items of a group)
  int64_t shared_bytes = 0;  // of shared memory that the launch must ask for beside what the kernel declares
  std::vector<LaunchArgument> arguments;
  friend bool operator==(const Launch&, const Launch&) = default;
};

}  // namespace tensorsmith::runtime
