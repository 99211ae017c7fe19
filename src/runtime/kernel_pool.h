// The threads that run the parallel loops of kernels. They are started once, are cheap to wake, and
// do not occupy processors for long while idle.
#pragma once

#include <cstdint>
#include <memory>

#include "base/processors.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::runtime {

// A fixed team of num_threads threads, which includes the caller of parallel_for (with one thread,
// none is started). An idle worker spins for a short while, since the next kernel of a model
// follows within microseconds, and then sleeps. If fewer threads can run at once than the team has
// (too few processors, or a CPU time quota, which spinning would use up), no worker spins.
//
// parallel_for splits [0, n) into min(n, num_threads) contiguous ranges, whose sizes differ by at
// most one, and each of them into a few pieces. Thread t starts with the pieces of range t, so that
// equal loops find their data in the same caches. It then takes the remaining pieces of other
// ranges: a worker that is not scheduled delays the loop by no more than the piece that it runs.
// The workers run on the processors that the pool was created on. They avoid the processor of the
// caller, and its whole core if there is another core for each of them.
//
// A call from inside a body, or while another thread's call runs, is executed inline by the calling
// thread. Bodies must not throw.
class KernelPool {
 public:
  // num_threads >= 1. If the system refuses to start a thread, the team has only the threads
  // started so far.
  explicit KernelPool(int num_threads);
  // Uses the given machine and reads no files, for environments where these are not accessible.
  KernelPool(int num_threads, const Processors& machine);
  ~KernelPool();
  KernelPool(const KernelPool&) = delete;
  KernelPool& operator=(const KernelPool&) = delete;

  int num_threads() const;

  // Returns when body has run on every iteration; the bodies' writes are visible to the caller. The
  // body receives the index of the thread that runs it: bodies of one call that run concurrently
  // never get the same index.
  void parallel_for(int64_t n, TensorsmithParallelBody body, void* closure);

  // Value of TensorsmithKernelContext::parallel_for; `pool` is a KernelPool.
  static void parallel_for_abi(void* pool, int64_t n, TensorsmithParallelBody body, void* closure);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the number of processors (hardware threads) that the calling thread may run on, at least
// 1, without regard to cgroup quotas.
int available_processors();

}  // namespace tensorsmith::runtime
