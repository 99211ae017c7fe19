// The calling convention of kernels: where generated code finds the caller's arguments, and how a
// kernel states its demands. All offsets come from the structs of runtime/kernel_abi.h, so that no
// backend hard-codes one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/stmt.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::codegen {

// Offsets in bytes from the beginning of TensorsmithKernelContext.
struct ContextOffsets {
  static constexpr int64_t kParallelFor = offsetof(TensorsmithKernelContext, parallel_for);
  static constexpr int64_t kPool = offsetof(TensorsmithKernelContext, pool);
  static constexpr int64_t kSharedWorkspace = offsetof(TensorsmithKernelContext, shared_workspace);
  static constexpr int64_t kThreadWorkspace = offsetof(TensorsmithKernelContext, thread_workspace);
  static constexpr int64_t kThreadWorkspaceStride =
      offsetof(TensorsmithKernelContext, thread_workspace_stride);
};

// Distance between entries of the kernel's list of buffers, and between the members of a closure.
inline constexpr int64_t kPointerBytes = sizeof(void*);
static_assert(kPointerBytes == sizeof(int64_t), "closures hold pointers and 64-bit indices in equal slots");

// Alignment of buffers and workspaces.
inline constexpr int64_t kBufferAlignment = TENSORSMITH_BUFFER_ALIGNMENT;
constexpr int64_t aligned_to_buffer(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

// Stack bytes that one buffer may take, and that all buffers of one function may take; other
// buffers go to a workspace.
inline constexpr int64_t kMaxStackBuffer = 32 << 10;
inline constexpr int64_t kMaxStack = 256 << 10;

// Returns the fields of SYMBOL_info for a kernel of the program.
std::vector<int64_t> demands_of(const ir::Program& program, int64_t shared_bytes, int64_t thread_bytes);

}  // namespace tensorsmith::codegen
