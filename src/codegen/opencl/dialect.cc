#include "codegen/gpu/dialect.h"

#include "codegen/c/header_text.h"

namespace tensorsmith::codegen {

namespace {

std::string opencl_kernel_head(const GpuExtents& e) {
  return "__kernel __attribute__((reqd_work_group_size(" + std::to_string(e[kThreadX]) + ", " +
         std::to_string(e[kThreadY]) + ", " + std::to_string(e[kThreadZ]) + "))) ";
}

}  // namespace

const GpuDialect& opencl_c() {
  static const GpuDialect dialect = [] {
    GpuDialect d;
    d.c = c99();
    d.c.header = "";
    d.c.prologue = kOpenClText;
    d.c.vectors = "";
    d.device_pointer = "__global ";
    d.shared = "__local";
    d.barrier = "barrier(CLK_LOCAL_MEM_FENCE);";
    d.indices = {"get_group_id(0)", "get_group_id(1)", "get_group_id(2)",
                 "get_local_id(0)", "get_local_id(1)", "get_local_id(2)"};
    d.unroll = "#pragma unroll";
    d.kernel_head = opencl_kernel_head;
    return d;
  }();
  return dialect;
}

}  // namespace tensorsmith::codegen
