// Memory for a simulated kernel: all its buffers in one block, at offsets that depend only on the
// program, so that the simulated caches see the same addresses in every process.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "codegen/backend.h"
#include "lower/lower.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::measure {

class KernelMemory {
 public:
  static Result<std::unique_ptr<KernelMemory>> create(const ir::Program& program,
                                                      const codegen::CompiledKernel& kernel);
  ~KernelMemory();
  KernelMemory(const KernelMemory&) = delete;
  KernelMemory& operator=(const KernelMemory&) = delete;

  // Runs the kernel on this thread alone.
  void run(TensorsmithKernel function);
  // Converts an address to an offset in the block; nullopt for the stack and for constants in the
  // code.
  std::optional<uint64_t> offset_of(uint64_t address) const;

  struct Place {
    std::string name;  // name of the buffer, or "workspace"
    uint64_t begin = 0;
    int64_t bytes = 0;
  };
  const std::vector<Place>& places() const { return places_; }
  size_t place_at(uint64_t offset) const;  // the last place that begins at or before the offset

 private:
  KernelMemory() = default;
  void add(std::string name, int64_t bytes);

  std::vector<Place> places_;
  uint64_t bytes_ = 0;
  std::byte* block_ = nullptr;
  int64_t thread_workspace_bytes_ = 0;
};

}  // namespace tensorsmith::measure
