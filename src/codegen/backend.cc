#include "codegen/backend.h"

#include <algorithm>
#include <array>

#include "codegen/c/codegen.h"
#include "codegen/cuda/codegen.h"
#include "codegen/llvm/codegen.h"
#include "codegen/opencl/codegen.h"
#include "codegen/traced.h"
#include "ir/analysis.h"
#include "ir/verify_program.h"
#include "runtime/device/gpu_platform.h"

namespace tensorsmith::codegen {
namespace {

// The backends of the GPU platforms, one row each.
struct PlatformBackend {
  const runtime::GpuPlatform* platform;
  const Backend& (*backend)();
};
constexpr PlatformBackend kPlatformBackends[] = {{&runtime::cuda_platform, cuda_backend},
                                                 {&runtime::opencl_platform, opencl_backend}};

}  // namespace

Result<TracedKernel> Backend::compile_traced(const ir::Program&, const target::Device&, const CodegenOptions&,
                                             TraceBuffer&) const {
  return Error{ErrorCode::kUnsupported, "backend " + std::string(name()),
               "cannot make kernels that report their accesses; use llvm"};
}

std::span<const Backend* const> backends() {
  static const std::array<const Backend*, 4> all = {&llvm_backend(), &c_backend(), &opencl_backend(),
                                                    &cuda_backend()};
  return all;
}

const Backend& default_backend() { return *backends().front(); }

Result<const Backend*> backend_for(const target::Device& device) {
  if (device.kind() != target::DeviceKind::kGpu) return &default_backend();
  for (const auto& [platform, backend] : kPlatformBackends) {
    if (platform->runs(device.arch)) return &backend();
  }
  return Error{ErrorCode::kUnsupported, "device " + device.name,
               "no GPU platform runs the architecture '" + device.arch + "'; the platforms are " +
                   runtime::gpu_names("", " and ")};
}

Result<const Backend*> find_backend(std::string_view name) {
  std::string names;
  for (const Backend* backend : backends()) {
    if (backend->name() == name) return backend;
    names += (names.empty() ? "" : ", ") + std::string(backend->name());
  }
  return Error{ErrorCode::kNotFound, "backend",
               "unknown backend '" + std::string(name) + "'; the backends are " + names};
}

Status check_compilable(const ir::Program& program, const CodegenOptions& options) {
  const auto name_ok = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  if (options.symbol.empty() || !std::all_of(options.symbol.begin(), options.symbol.end(), name_ok)) {
    return Error{ErrorCode::kInvalidArgument, "codegen of '" + program.name + "'",
                 "symbol '" + options.symbol + "' is not a name of letters, digits, '_' and '.'"};
  }
  TS_RETURN_IF_ERROR(ir::verify(program));
  Status status;
  ir::for_each_stmt(program.body, [&](const ir::Stmt& s) {
    if (const auto* loop = ir::as<ir::For>(s); loop != nullptr && loop->kind == ir::ForKind::kThread) {
      status = Error{ErrorCode::kUnsupported, "loop " + loop->var.name(),
                     "is bound to a GPU thread axis; the program was scheduled for a GPU, not for a CPU"};
    }
  });
  return status;
}

}  // namespace tensorsmith::codegen
