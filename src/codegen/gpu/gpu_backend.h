// The part that the backends for GPUs share.
#pragma once

#include <chrono>

#include "codegen/gpu/emitter.h"

namespace tensorsmith::codegen {

class GpuBackend : public Backend {
 public:
  BackendTraits traits() const override { return {.self_contained = false, .other_architectures = true}; }
  Result<std::unique_ptr<LoadedKernel>> load(const std::vector<char>&,
                                             const std::string& symbol) const override {
    return Error{ErrorCode::kUnsupported, "loading kernel '" + symbol + "'",
                 "a GPU kernel runs on a device and cannot be loaded into this process"};
  }
  Result<std::vector<char>> link(const std::vector<std::vector<char>>& objects) const override {
    std::vector<char> all;
    for (const std::vector<char>& module : objects) all.insert(all.end(), module.begin(), module.end());
    return all;
  }

 protected:
  // Returns the kernel of this source. `object`: the source's text or what a compiler made of it. `start`:
  // when code generation began.
  static CompiledKernel kernel_of(const GpuSource& source, const CodegenOptions& options,
                                  std::vector<char> object, std::chrono::steady_clock::time_point start) {
    CompiledKernel kernel;
    kernel.symbol = options.symbol;
    kernel.object = std::move(object);
    kernel.launches = source.launches;
    kernel.shared_workspace_bytes = source.workspace_bytes;
    kernel.codegen_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return kernel;
  }
};

}  // namespace tensorsmith::codegen
