// What differs between the languages of GPUs, beside what differs from C (codegen/c/dialect.h).
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
  std::string_view device_pointer;                 // address space of a pointer to the device's memory
  std::string_view shared;                         // storage class of a block's array
  std::string_view barrier;                        // statement: the threads of the block wait for each other
  std::array<std::string_view, kGpuAxes> indices;  // expressions
  std::string_view unroll;                         // line before a loop that is to be unrolled
  // What stands before `void NAME(` of a kernel with blocks of so many threads.
  std::string (*kernel_head)(const GpuExtents& extents);
  // Arrays of a block beyond this come from the launch, as one array of bytes of this name; 0: never.
  int64_t declared_shared_bytes = 0;
  bool tensor_cores = false;       // it has the ts_mma functions of helpers_cuda.h
  std::string_view launch_shared;  // its declaration
};

const GpuDialect& opencl_c();
const GpuDialect& cuda_c();

}  // namespace tensorsmith::codegen
