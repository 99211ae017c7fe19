#include <array>
#include <mutex>

#include "codegen/cuda/codegen.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/gpu/gpu_backend.h"
#include "runtime/device/gpu_platform.h"

namespace tensorsmith::codegen {
namespace {

// Products are fused with sums only where the text requests it (ts_fma_f32).
const std::array<std::string, 1> kFlags = {"--fmad=false"};

// Instructions that only Hopper has need the architecture sm_90a, whose code does not run on later
// devices.
std::string architecture_for(const GpuSource& source, const target::Device& device) {
  return source.warpgroup_pipelines > 0 && device.processor == "sm_90" ? "sm_90a" : device.processor;
}

class CudaBackend final : public GpuBackend {
 public:
  explicit CudaBackend(bool text_only) : text_only_(text_only) {}
  std::string_view name() const override { return text_only_ ? "cuda-text" : "cuda"; }
  std::string version() const override { return text_only_ ? "CUDA C" : "CUDA C, by NVRTC"; }

  Result<CompiledKernel> compile(const ir::Program& program, const target::Device& device,
                                 const CodegenOptions& options) const override {
    const auto start = std::chrono::steady_clock::now();
    if (device.kind() != target::DeviceKind::kGpu || !runtime::cuda_platform.runs(device.arch)) {
      return Error{ErrorCode::kUnsupported, "device " + device.name,
                   "is not an NVIDIA GPU, but CUDA kernels run only on those; use --device cuda or an NVIDIA "
                   "GPU of `tensorsmith devices list`"};
    }
    TS_ASSIGN_OR_RETURN(const GpuSource source, emit_gpu(program, device, options, cuda_c()));
    const std::string text = gpu_prelude(cuda_c()) + source.instructions + source.text;
    if (text_only_) return kernel_of(source, options, {text.begin(), text.end()}, start);
    TS_ASSIGN_OR_RETURN(const auto compiler, this->compiler());
    TS_ASSIGN_OR_RETURN(CudaModule module, compiler->compile(text, architecture_for(source, device), kFlags));
    return kernel_of(source, options, std::move(module.cubin), start);
  }

 private:
  // Returns the compiler, which is loaded once. If it could not be loaded, the next call tries
  // again.
  Result<std::shared_ptr<const Nvrtc>> compiler() const {
    const std::lock_guard lock(mutex_);
    if (nvrtc_ == nullptr) {
      TS_ASSIGN_OR_RETURN(nvrtc_, Nvrtc::open());
    }
    return nvrtc_;
  }

  const bool text_only_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Nvrtc> nvrtc_;
};

}  // namespace

const Backend& cuda_backend() {
  static const CudaBackend backend(false);
  return backend;
}

const Backend& cuda_text_backend() {
  static const CudaBackend backend(true);
  return backend;
}

}  // namespace tensorsmith::codegen
