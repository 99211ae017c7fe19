#include "codegen/gpu/dialect.h"

#include "codegen/c/header_text.h"

namespace tensorsmith::codegen {

namespace {

// Shared memory that a kernel may declare statically on every device; a launch may request more.
constexpr int64_t kDeclaredSharedBytes = 48 << 10;

std::string cuda_kernel_head(const GpuExtents& e) {
  return "extern \"C\" __global__ __launch_bounds__(" +
         std::to_string(e[kThreadX] * e[kThreadY] * e[kThreadZ]) + ") ";
}

}  // namespace

const GpuDialect& cuda_c() {
  static const GpuDialect dialect = [] {
    GpuDialect d;
    d.c = c99();
    d.c.header = "";
    d.c.prologue = kCudaText;
    d.c.restrict_pointer = "__restrict__";
    d.c.vectors = "";
    d.c.f16_class = "ts_f16";
    d.shared = "__shared__";
    d.barrier = "__syncthreads();";
    d.indices = {"blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z"};
    d.unroll = "#pragma unroll";
    d.kernel_head = cuda_kernel_head;
    d.declared_shared_bytes = kDeclaredSharedBytes;
    d.tensor_cores = true;
    d.launch_shared = "extern __shared__ __align__(64) char launch_shared[];";
    return d;
  }();
  return dialect;
}

}  // namespace tensorsmith::codegen
