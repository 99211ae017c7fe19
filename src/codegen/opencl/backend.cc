#include <chrono>

#include "codegen/gpu/emitter.h"
#include "codegen/opencl/codegen.h"

namespace tensorsmith::codegen {
namespace {

class OpenClBackend final : public Backend {
 public:
  std::string_view name() const override { return "opencl"; }
  std::string version() const override { return "OpenCL C 1.2"; }
  BackendTraits traits() const override { return {.self_contained = false, .other_architectures = true}; }

  Result<CompiledKernel> compile(const ir::Program& program, const target::Device& device,
                                 const CodegenOptions& options) const override {
    const auto start = std::chrono::steady_clock::now();
    if (device.kind() != target::DeviceKind::kGpu) {
      return Error{ErrorCode::kUnsupported, "device " + device.name,
                   "is a CPU, but OpenCL kernels are made for GPUs; use --device opencl"};
    }
    TS_ASSIGN_OR_RETURN(const GpuSource source, emit_gpu(program, device, options, opencl_c()));
    const std::string text = gpu_prelude(opencl_c()) + source.text;
    CompiledKernel kernel;
    kernel.symbol = options.symbol;
    kernel.object.assign(text.begin(), text.end());
    kernel.launches = source.launches;
    kernel.shared_workspace_bytes = source.workspace_bytes;
    kernel.codegen_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return kernel;
  }
  Result<std::unique_ptr<LoadedKernel>> load(const std::vector<char>&,
                                             const std::string& symbol) const override {
    return Error{ErrorCode::kUnsupported, "loading kernel '" + symbol + "'",
                 "a GPU kernel runs on a device and cannot be loaded into this process"};
  }
  Result<std::vector<char>> link(const std::vector<std::vector<char>>& objects) const override {
    return join_modules(objects);
  }
};

}  // namespace

const Backend& opencl_backend() {
  static const OpenClBackend backend;
  return backend;
}

}  // namespace tensorsmith::codegen
