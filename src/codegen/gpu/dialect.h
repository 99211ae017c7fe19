// The differences between the languages of GPUs, besides those from C (codegen/c/dialect.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/c/dialect.h"
#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

struct GpuDialect {
  Dialect c;
  std::string_view device_pointer;  // address space of a pointer to the device's memory
  std::string_view shared;          // storage class of a block's shared array
  std::string_view barrier;         // statement that makes the threads of the block wait for each other
  std::array<std::string_view, kGpuAxes> indices;  // expressions of the block and thread indices
  std::string_view unroll;                         // line before a loop that the compiler should unroll
  // Returns the text before `void NAME(` of a kernel with these extents.
  std::string (*kernel_head)(const GpuExtents& extents);
  // If a block's arrays take more bytes than this, they come from the launch, as one byte array
  // (launch_shared). 0: never.
  int64_t declared_shared_bytes = 0;
  bool tensor_cores = false;       // the dialect has the ts_mma functions of helpers_cuda.h
  std::string_view launch_shared;  // declaration of the byte array
};

const GpuDialect& opencl_c();
const GpuDialect& cuda_c();

}  // namespace tensorsmith::codegen
