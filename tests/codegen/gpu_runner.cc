#include "codegen/gpu_runner.h"

#include <algorithm>

namespace tensorsmith::test {

using lower::Tensor;
using runtime::GpuSpan;

target::Device gpu_for(const runtime::Gpu& gpu) {
  target::Device device;
  device.name = "opencl";
  device.figures = target::GpuFigures{};
  const runtime::GpuProperties& p = gpu.properties();
  device.arch = p.place.platform->archs.front();
  if (p.place.platform == &runtime::cuda_platform)
    device.processor = "sm_" + std::to_string(p.compute_major) + std::to_string(p.compute_minor);
  device.gpu().registers_per_thread = 255;
  device.gpu().warp_size = 32;
  device.gpu().max_threads_per_block = std::min(1024, gpu.properties().max_threads_per_block);
  device.gpu().shared_memory_per_block =
      std::min<int64_t>(48 << 10, gpu.properties().shared_memory_per_block);
  device.gpu().registers_per_block = 65536;
  device.gpu().max_vthread_extent = 8;
  return device;
}

Result<std::vector<Tensor>> compile_and_run(runtime::Gpu& gpu, const ir::Program& program,
                                            const target::Device& device, std::span<const Tensor> inputs) {
  TS_ASSIGN_OR_RETURN(const codegen::CompiledKernel kernel,
                      codegen::backend_for(device).value()->compile(program, device, {}));
  TS_ASSIGN_OR_RETURN(const auto module, gpu.load(kernel.object));
  std::vector<std::unique_ptr<runtime::GpuMemory>> memory;
  std::vector<GpuSpan> buffers;
  const auto allocate = [&](int64_t bytes) -> Status {
    TS_ASSIGN_OR_RETURN(auto piece, gpu.allocate(std::max<int64_t>(bytes, 1)));
    TS_RETURN_IF_ERROR(gpu.fill(piece->all(), 0xA5));
    buffers.push_back({piece.get(), 0, bytes});
    memory.push_back(std::move(piece));
    return {};
  };
  for (const Tensor& input : inputs) {
    TS_RETURN_IF_ERROR(allocate(static_cast<int64_t>(input.num_bytes())));
    if (!input.data.empty()) TS_RETURN_IF_ERROR(gpu.copy_in(buffers.back(), input.data.data()));
  }
  std::vector<Tensor> outputs;
  for (const ir::Buffer& b : program.outputs) {
    outputs.push_back(Tensor::zeros(b->dtype, b->shape));
    TS_RETURN_IF_ERROR(allocate(static_cast<int64_t>(outputs.back().num_bytes())));
  }
  const size_t parameters = buffers.size();
  TS_RETURN_IF_ERROR(allocate(gpu.workspace_bytes(kernel.launches, kernel.shared_workspace_bytes)));
  TS_ASSIGN_OR_RETURN(const auto sequence, gpu.make_sequence());
  TS_RETURN_IF_ERROR(
      sequence->add(*module, kernel.launches, std::span(buffers).first(parameters), buffers.back()));
  TS_RETURN_IF_ERROR(sequence->run());
  for (size_t o = 0; o < outputs.size(); ++o)
    TS_RETURN_IF_ERROR(gpu.copy_out(buffers[inputs.size() + o], outputs[o].data.data()));
  TS_RETURN_IF_ERROR(gpu.synchronize());
  return outputs;
}

}  // namespace tensorsmith::test
