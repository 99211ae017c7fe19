// NVIDIA's run-time compiler: CUDA C to machine code, without a GPU and without a toolkit. Its library is loaded when it
// is asked for; PyPI has it as nvidia-cuda-nvrtc-cu12 (12.9: sm_50 and up) and nvidia-cuda-nvrtc (13: sm_75 and up).
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
  std::vector<KernelResources> kernels;  // by symbol
};

// All members may be called from any thread.
class Nvrtc {
 public:
  // The newest version in the first of the folders that has one, and no other; where none has one, what the loader finds.
  // kNotFound: it cannot be loaded, with what to install.
  static Result<std::shared_ptr<const Nvrtc>> open(std::span<const std::string> folders = {});
  ~Nvrtc();

  std::pair<int, int> version() const;            // 12, 9
  const std::vector<int>& architectures() const;  // 75 for sm_75, ascending
  // architecture: "sm_80", "sm_90a". flags: as of nvcc. kUnsupported: an architecture that this version does not know,
  // with those that it does; kInvalidArgument: code or flags that it refuses, with what it says in one line.
  Result<CudaModule> compile(const std::string& source, const std::string& architecture,
                             std::span<const std::string> flags = {}) const;

 private:
  struct Api;
  explicit Nvrtc(std::unique_ptr<Api> api);
  std::unique_ptr<Api> api_;
};

}  // namespace tensorsmith::codegen
