#include "runnable_kernel.h"

#include <algorithm>
#include <ctime>
#include <limits>

#include "codegen/build.h"

namespace tensorsmith::bench {

double now(int threads) {
  timespec t{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Result<std::unique_ptr<RunnableKernel>> RunnableKernel::build(const space::DesignSpace& space,
                                                              const space::Candidate& candidate,
                                                              const target::Device& device) {
  TS_ASSIGN_OR_RETURN(const sched::Trace trace, space.to_trace(candidate));
  TS_ASSIGN_OR_RETURN(codegen::BuiltKernel built,
                      codegen::build(space.workload(), trace, device, codegen::default_backend(), {}));
  return load(built.lowered.program, std::move(built.kernel));
}

Result<std::unique_ptr<RunnableKernel>> RunnableKernel::load(const ir::Program& program,
                                                             codegen::CompiledKernel compiled) {
  auto kernel = std::make_unique<RunnableKernel>();
  kernel->program_ = program;
  kernel->compiled_ = std::move(compiled);
  TS_ASSIGN_OR_RETURN(kernel->loaded_,
                      codegen::default_backend().load(kernel->compiled_.object, kernel->compiled_.symbol));
  return kernel;
}

// Fills the block with 0.25: subnormal numbers would slow a kernel down.
void* RunnableKernel::block(int64_t bytes) {
  constexpr size_t kPage = 4096;
  const size_t size = (static_cast<size_t>(bytes) + kPage) / kPage * kPage;
  blocks_.emplace_back(static_cast<float*>(std::aligned_alloc(kPage, size)), &std::free);
  std::fill_n(blocks_.back().get(), size / sizeof(float), 0.25F);
  return blocks_.back().get();
}

void RunnableKernel::make_buffers(runtime::KernelPool& pool) {
  for (const auto* list : {&program_.inputs, &program_.outputs})
    for (const ir::Buffer& b : *list) buffers_.push_back(block(b->num_elements() * ir::bytes_of(b->dtype)));
  context_.parallel_for = &runtime::KernelPool::parallel_for_abi;
  context_.pool = &pool;
  context_.num_threads = pool.num_threads();
  context_.shared_workspace = block(compiled_.shared_workspace_bytes);
  context_.thread_workspace_stride = (compiled_.thread_workspace_bytes + 63) / 64 * 64;
  context_.thread_workspace = block(context_.thread_workspace_stride * pool.num_threads());
}

double RunnableKernel::run(runtime::KernelPool& pool) {
  if (buffers_.empty()) make_buffers(pool);
  const double start = now(pool.num_threads());
  loaded_->function()(&context_, buffers_.data());
  return now(pool.num_threads()) - start;
}

double RunnableKernel::best_of(int runs, runtime::KernelPool& pool) {
  double best = std::numeric_limits<double>::infinity();
  for (int r = 0; r < runs; ++r) best = std::min(best, run(pool));
  return best;
}

}  // namespace tensorsmith::bench
