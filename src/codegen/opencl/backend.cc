#include "codegen/gpu/gpu_backend.h"
#include "codegen/opencl/codegen.h"

namespace tensorsmith::codegen {
namespace {

class OpenClBackend final : public GpuBackend {
 public:
  std::string_view name() const override { return "opencl"; }
  std::string version() const override { return "OpenCL C 1.2"; }

  Result<CompiledKernel> compile(const ir::Program& program, const target::Device& device,
                                 const CodegenOptions& options) const override {
    const auto start = std::chrono::steady_clock::now();
    if (device.kind() != target::DeviceKind::kGpu) {
      return Error{ErrorCode::kUnsupported, "device " + device.name,
                   "is a CPU, but OpenCL kernels are made for GPUs; use --device opencl"};
    }
    TS_ASSIGN_OR_RETURN(const GpuSource source, emit_gpu(program, device, options, opencl_c()));
    const std::string text = gpu_prelude(opencl_c()) + source.text;
    return kernel_of(source, options, {text.begin(), text.end()}, start);
  }
};

}  // namespace

const Backend& opencl_backend() {
  static const OpenClBackend backend;
  return backend;
}

}  // namespace tensorsmith::codegen
