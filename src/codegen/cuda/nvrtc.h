// NVIDIA's run-time compiler, which compiles CUDA C to machine code without a GPU or a toolkit. Its
// library is loaded on demand. PyPI packages: nvidia-cuda-nvrtc-cu12 (12.9: sm_50 and up) and
// nvidia-cuda-nvrtc (13: sm_75 and up).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "codegen/cuda/kernel_resources.h"

namespace tensorsmith::codegen {

struct CudaModule {
  std::vector<char> cubin;               // an ELF file for one architecture
  std::vector<KernelResources> kernels;  // sorted by symbol
};

// All members may be called from any thread.
class Nvrtc {
 public:
  // Opens the newest version in the first of the folders that contains one; if none does, the one
  // that the dynamic loader finds. Returns kNotFound, with a hint what to install, if it cannot be
  // loaded.
  static Result<std::shared_ptr<const Nvrtc>> open(std::span<const std::string> folders = {});
  ~Nvrtc();

  std::pair<int, int> version() const;            // for example {12, 9}
  const std::vector<int>& architectures() const;  // in ascending order; 75 stands for sm_75
  // Compiles for `architecture` ("sm_80", "sm_90a") with nvcc's `flags`. Errors: kUnsupported for
  // an architecture that this version does not know, with a list of those that it does;
  // kInvalidArgument for code or flags that it rejects, with its message in one line.
  Result<CudaModule> compile(const std::string& source, const std::string& architecture,
                             std::span<const std::string> flags = {}) const;

 private:
  struct Api;
  explicit Nvrtc(std::unique_ptr<Api> api);
  std::unique_ptr<Api> api_;
};

}  // namespace tensorsmith::codegen
