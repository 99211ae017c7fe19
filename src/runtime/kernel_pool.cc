#include "runtime/kernel_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <system_error>
#include <thread>
#include <vector>

#include "base/loop_ranges.h"
#include "base/result.h"

namespace tensorsmith::runtime {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free,
              "futex words are plain 32-bit integers");

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() or until the time is over; returns whether done.
template <class Done>
bool spin_until(std::chrono::nanoseconds limit, const Done& done) {
  if (limit.count() <= 0) return done();
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      cpu_relax();
    }
    if (std::chrono::steady_clock::now() - start > limit) return done();
  }
}

// Longer than the gap between two kernels of a model and than the imbalance of most loops, but much
// shorter than a scheduler's time slice.
constexpr std::chrono::nanoseconds kSpin = std::chrono::microseconds(50);

// The pool whose loop this thread is running, to recognize nested calls, and the thread's index in
// it.
thread_local const void* running_pool = nullptr;
thread_local int32_t running_thread = 0;

}  // namespace

int available_processors() { return allowed_processors().size(); }

struct KernelPool::State {
  // The unclaimed pieces of a thread's range: job number << 32 | count; the first pieces are
  // claimed first. A thread that claims a piece by decrementing the count knows that the job is
  // still running (the caller waits for all pieces), so that its fields are valid. A late thread
  // finds another job or no piece left and accesses nothing.
  struct alignas(128) Slot {
    std::atomic<uint64_t> left{0};
  };

  // Written by the caller before it fills the slots.
  TensorsmithParallelBody body = nullptr;
  void* closure = nullptr;
  int64_t n = 0;
  int32_t ranges = 0;

  alignas(128) std::atomic<uint32_t> epoch{0};
  std::atomic<bool> stopping{false};
  alignas(128) std::atomic<uint32_t> pending{0};  // pieces of the job not finished
  std::atomic<bool> caller_sleeps{false};
  alignas(128) std::atomic<int32_t> sleepers{0};
  alignas(128) std::atomic<bool> busy{false};

  std::vector<Slot> slots;
  std::vector<std::thread> workers;
  std::chrono::nanoseconds spin{0};
  const Processors machine;    // that the pool was created on
  int cleared_processor = -1;  // processor of the busy caller, which the workers avoid
  // Processors that the workers are moved to instead. Allocated once, since a run of a model must
  // not allocate.
  std::vector<int> others;
  ProcessorMask mask;

  State(size_t num_threads, const Processors& made_on)
      : slots(num_threads), machine(made_on), mask(machine.allowed.back()) {
    others.reserve(machine.allowed.size());
  }

  LoopRange range_of(int32_t slot) const { return loop_part(n, ranges, slot); }

  // Marks the thread as running this pool's loop for the duration of the call.
  void run_range(TensorsmithParallelBody fn, void* argument, int64_t begin, int64_t end, int32_t thread) {
    const void* outer_pool = running_pool;
    const int32_t outer_thread = running_thread;
    running_pool = this;
    running_thread = thread;
    fn(argument, begin, end, thread);
    running_pool = outer_pool;
    running_thread = outer_thread;
  }

  // Runs the unclaimed pieces of a slot.
  void run_slot(int32_t slot, uint32_t job, int32_t thread) {
    std::atomic<uint64_t>& word = slots[slot].left;
    uint64_t value = word.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t left = value & 0xffffffffu;
      if (value >> 32 != job || left == 0) return;
      if (!word.compare_exchange_weak(value, value - 1, std::memory_order_acq_rel, std::memory_order_relaxed))
        continue;
      const LoopRange range = range_of(slot);
      const LoopRange piece = loop_piece(range, loop_pieces(range) - left);
      run_range(body, closure, piece.begin, piece.end, thread);
      // seq_cst pairs with the caller's store to caller_sleeps: either the caller sees pending == 0
      // or this thread sees that it sleeps.
      if (pending.fetch_sub(1) == 1 && caller_sleeps.load()) futex_wake_all(pending);
      value = word.load(std::memory_order_relaxed);
    }
  }

  // Runs the thread's own range, then the remaining pieces of other threads' ranges.
  void run_job(uint32_t job, int32_t thread) {
    const int32_t threads = slots.size();
    for (int32_t i = 0; i < threads; ++i) run_slot((thread + i) % threads, job, thread);
  }

  // The system tends to wake a thread on its waker's processor, or to move the caller to where a
  // worker sleeps. A worker there cannot start before the caller is preempted, some milliseconds
  // later, and would not be migrated. So the caller, the only thread that is certain to run, moves
  // all workers to the other processors, and off its core if that leaves a core for each.
  void clear_callers_processor() {
    const int processor = sched_getcpu();
    if (processor == cleared_processor || spin.count() == 0) return;
    cleared_processor = processor;
    processors_beside(machine, processor, workers.size() + 1, others);
    if (others.empty()) return;
    mask.assign(others);
    for (std::thread& worker : workers)
      pthread_setaffinity_np(worker.native_handle(), mask.bytes(), mask.data());
  }

  void run_worker(int32_t thread) {
    uint32_t seen = 0;
    for (;;) {
      uint32_t now = seen;
      const auto changed = [&] { return (now = epoch.load(std::memory_order_acquire)) != seen; };
      if (!spin_until(spin, changed)) {
        sleepers.fetch_add(1);
        // seq_cst pairs with publish(): either publish() sees the sleeper or the futex sees the new
        // epoch.
        while ((now = epoch.load()) == seen) futex_wait(epoch, seen);
        sleepers.fetch_sub(1);
      }
      seen = now;
      if (stopping.load(std::memory_order_acquire)) return;
      run_job(seen, thread);
    }
  }

  void publish(uint32_t job) {
    epoch.store(job);
    if (sleepers.load() > 0) futex_wake_all(epoch);
  }
};

KernelPool::KernelPool(int num_threads) : KernelPool(num_threads, processors()) {}

KernelPool::KernelPool(int num_threads, const Processors& machine) {
  TS_CHECK(num_threads >= 1, "KernelPool needs at least one thread");
  state_ = std::make_unique<State>(num_threads, machine);
  if (num_threads <= machine.at_once) state_->spin = kSpin;
  state_->workers.reserve(num_threads - 1);
  try {
    for (int t = 1; t < num_threads; ++t)
      state_->workers.emplace_back([state = state_.get(), t] { state->run_worker(t); });
  } catch (const std::system_error&) {
    // If no more threads can be started, the pool uses those that it has.
  }
}

KernelPool::~KernelPool() {
  state_->stopping.store(true, std::memory_order_release);
  state_->publish(state_->epoch.load() + 1);
  for (auto& worker : state_->workers) worker.join();
}

int KernelPool::num_threads() const { return state_->workers.size() + 1; }

void KernelPool::parallel_for(int64_t n, TensorsmithParallelBody body, void* closure) {
  if (n <= 0) return;
  State& s = *state_;
  if (running_pool == &s) {
    body(closure, 0, n, running_thread);
    return;
  }
  const int32_t threads = num_threads();
  if (threads == 1 || n == 1 || s.busy.exchange(true, std::memory_order_acquire)) {
    s.run_range(body, closure, 0, n, 0);
    return;
  }
  s.body = body;
  s.closure = closure;
  s.n = n;
  s.ranges = std::min<int64_t>(n, threads);
  s.clear_callers_processor();
  const uint32_t job = s.epoch.load(std::memory_order_relaxed) + 1;
  int64_t pieces = 0;
  for (int32_t t = 0; t < s.ranges; ++t) pieces += loop_pieces(s.range_of(t));
  s.pending.store(pieces, std::memory_order_relaxed);
  for (int32_t t = 0; t < threads; ++t) {
    const int64_t own = t < s.ranges ? loop_pieces(s.range_of(t)) : 0;
    s.slots[t].left.store(uint64_t{job} << 32 | own, std::memory_order_release);
  }
  s.publish(job);

  s.run_job(job, 0);
  const auto finished = [&] { return s.pending.load(std::memory_order_acquire) == 0; };
  if (!spin_until(s.spin, finished)) {
    s.caller_sleeps.store(true);
    uint32_t left = 0;
    while ((left = s.pending.load()) != 0) futex_wait(s.pending, left);
    s.caller_sleeps.store(false);
  }
  s.busy.store(false, std::memory_order_release);
}

void KernelPool::parallel_for_abi(void* pool, int64_t n, TensorsmithParallelBody body, void* closure) {
  static_cast<KernelPool*>(pool)->parallel_for(n, body, closure);
}

}  // namespace tensorsmith::runtime
