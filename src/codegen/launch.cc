#include "codegen/launch.h"

namespace tensorsmith::codegen {

std::vector<int64_t> demands_of(const ir::Program& program, int64_t shared_bytes, int64_t thread_bytes) {
  std::vector<int64_t> fields(TENSORSMITH_INFO_BUFFER_BYTES);
  fields[TENSORSMITH_INFO_ABI_VERSION] = TENSORSMITH_KERNEL_ABI_VERSION;
  fields[TENSORSMITH_INFO_INPUTS] = program.inputs.size();
  fields[TENSORSMITH_INFO_OUTPUTS] = program.outputs.size();
  fields[TENSORSMITH_INFO_SHARED_BYTES] = shared_bytes;
  fields[TENSORSMITH_INFO_THREAD_BYTES] = thread_bytes;
  for (const auto* buffers : {&program.inputs, &program.outputs}) {
    for (const ir::Buffer& buffer : *buffers)
      fields.push_back(ir::bytes_of(buffer->dtype, buffer->allocation_elements()));
  }
  return fields;
}

}  // namespace tensorsmith::codegen
