// What one kernel call of a GPU is, as plain data: the launches that compute a program, in order. Code generation makes
// it, whoever runs kernels on a device (runtime/device) executes it, compiled models store it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tensorsmith::runtime {

// A pointer that a launch gets.
struct LaunchArgument {
  int64_t buffer = -1;  // position among the call's buffers (inputs, then outputs); -1: the workspace
  int64_t workspace_offset = 0;  // of the workspace: bytes from its beginning, a multiple of kBufferAlignment
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
