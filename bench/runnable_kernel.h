// A kernel with buffers of its own program's sizes, as benchmarks run it.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "codegen/backend.h"
#include "ir/stmt.h"
#include "runtime/kernel_pool.h"
#include "space/design_space.h"

namespace tensorsmith::bench {

// Seconds since an arbitrary start: on one thread of its processor time, so that time lent to others does not count,
// else of the wall clock.
double now(int threads);

class RunnableKernel {
 public:
  // A candidate's, built by the default backend.
  static Result<std::unique_ptr<RunnableKernel>> build(const space::DesignSpace& space,
                                                       const space::Candidate& candidate,
                                                       const target::Device& device);
  // Of a kernel that was compiled before, for this program.
  static Result<std::unique_ptr<RunnableKernel>> load(const ir::Program& program,
                                                      codegen::CompiledKernel compiled);

  // Seconds of one run. The pool is the same in all calls.
  double run(runtime::KernelPool& pool);
  // The fastest of some.
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
