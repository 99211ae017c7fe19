// The threads that run the parallel loops of kernels: started once, cheap to wake, never in the way of others
// for long.
#pragma once

#include <cstdint>
#include <memory>

#include "base/processors.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::runtime {

// A fixed team of num_threads threads, the caller of parallel_for being one of them (with one thread none is
// started). An idle worker spins for a short while, since the next kernel of a model follows within
// microseconds, then sleeps in the kernel. If fewer threads can be busy at once than the team has (too few
// processors, or a quota of time, which spinning would use up), nobody spins.
//
// parallel_for splits [0, n) into min(n, num_threads) contiguous ranges, sizes differing by at most one, and
// each of them into a few pieces. Thread t starts with the pieces of range t, so that equal loops find their
// data in the same caches, and goes on with what is left of the others': a worker that the system does not
// schedule delays the loop by no more than the piece it runs. Workers are kept off the caller's processor, and
// off its core if there is one for each thread, on the others of those that the pool was made on.
//
// A call from inside a body, or while another thread's call runs, is executed inline by the calling thread.
// Bodies must not throw.
class KernelPool {
 public:
  // num_threads >= 1. If the system refuses to start a thread, the team is as large as it got.
  explicit KernelPool(int num_threads);
  // The same, without reading files to find out about the machine: where they are out of reach.
  KernelPool(int num_threads, const Processors& machine);
  ~KernelPool();
  KernelPool(const KernelPool&) = delete;
  KernelPool& operator=(const KernelPool&) = delete;

  int num_threads() const;

  // Returns when body has run on every iteration; what the bodies wrote is visible to the caller. Body gets
  // the index of the thread that runs it: two concurrent bodies of one call never see the same.
  void parallel_for(int64_t n, TensorsmithParallelBody body, void* closure);

  // TensorsmithKernelContext::parallel_for; pool is a KernelPool.
  static void parallel_for_abi(void* pool, int64_t n, TensorsmithParallelBody body, void* closure);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Processors that the calling thread may run on, at least 1: hardware threads, whatever cgroups give of them.
int available_processors();

}  // namespace tensorsmith::runtime
