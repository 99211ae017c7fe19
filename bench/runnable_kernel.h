// A compiled kernel with buffers of the sizes that its program declares, ready to run in benchmarks.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "codegen/backend.h"
#include "ir/stmt.h"
#include "runtime/kernel_pool.h"
#include "space/design_space.h"

namespace tensorsmith::bench {

// Returns seconds since an arbitrary start. With one thread they are processor time of the calling
// thread, which other load on the machine does not affect; otherwise wall-clock time.
double now(int threads);

class RunnableKernel {
 public:
  // Builds a candidate with the default backend.
  static Result<std::unique_ptr<RunnableKernel>> build(const space::DesignSpace& space,
                                                       const space::Candidate& candidate,
                                                       const target::Device& device);
  // Loads a kernel that was compiled for this program before.
  static Result<std::unique_ptr<RunnableKernel>> load(const ir::Program& program,
                                                      codegen::CompiledKernel compiled);

  // Returns the seconds of one run. The pool must be the same in all calls.
  double run(runtime::KernelPool& pool);
  // Returns the seconds of the fastest of `runs` runs.
  double best_of(int runs, runtime::KernelPool& pool);

  const ir::Program& program() const { return program_; }
  double codegen_ms() const { return 1e3 * compiled_.codegen_seconds; }

 private:
  void make_buffers(runtime::KernelPool& pool);
  void* block(int64_t bytes);

  ir::Program program_;
  codegen::CompiledKernel compiled_;
  std::unique_ptr<codegen::LoadedKernel> loaded_;
  std::vector<std::unique_ptr<float, void (*)(void*)>> blocks_;
  std::vector<void*> buffers_;
  TensorsmithKernelContext context_{};
};

}  // namespace tensorsmith::bench
