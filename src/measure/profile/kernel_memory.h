// The memory of a kernel that is simulated: all its buffers in one block, each at a place that depends on nothing but
// the program, so that caches see the same addresses in every process.
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
  // An address of the block as an offset in it; none for the stack and constants in the code.
  std::optional<uint64_t> offset_of(uint64_t address) const;

  struct Place {
    std::string name;  // of the buffer, "workspace"
    uint64_t begin = 0;
    int64_t bytes = 0;
  };
  const std::vector<Place>& places() const { return places_; }
  size_t place_at(uint64_t offset) const;  // the last one that begins there or before

 private:
  KernelMemory() = default;
  void add(std::string name, int64_t bytes);

  std::vector<Place> places_;
  uint64_t bytes_ = 0;
  std::byte* block_ = nullptr;
  int64_t thread_workspace_bytes_ = 0;
};

}  // namespace tensorsmith::measure
