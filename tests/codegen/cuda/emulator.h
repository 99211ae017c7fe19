/* A block of CUDA threads on the host, for kernels as text: what stands in place of codegen/cuda/helpers_cuda.h. Threads
   are fibers that run until they wait for others, the warps in a given order, so one warp is as far ahead of the next as
   barriers allow. Instructions of a warp are written down after the PTX ISA: ldmatrix, mma ("Matrix Fragments for ..."),
   cp.async. */
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __shared__ static
#define __launch_bounds__(threads)
#define TS_ALIGNED __attribute__((aligned(16)))
#define TS_INLINE static inline
#define TS_DOUBLE 1
#define TS_SHORT_ERF 1
typedef double ts_wide;
#define TS_F32(name) name##f
#define TS_PRECISE_F32(name) name##f
TS_INLINE float ts_fma_f32(float a, float b, float c) { return std::fmaf(a, b, c); }
TS_INLINE double ts_fma_f64(double a, double b, double c) { return std::fma(a, b, c); }
TS_INLINE uint32_t ts_bits_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}
TS_INLINE float ts_f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
#define TS_COPY(elements, bytes, to, from) memcpy(to, from, bytes)
static uint64_t ts_join_sums(float even, float odd) {
  return (uint64_t)ts_bits_f32(even) << 32 | ts_bits_f32(odd);
}
static void ts_part_sums(uint64_t sums, float& even, float& odd) {
  even = ts_f32_of_bits((uint32_t)(sums >> 32));
  odd = ts_f32_of_bits((uint32_t)sums);
}
static void ts_add_products(uint64_t& sums, float x, float even, float odd) {
  float of_even, of_odd;
  ts_part_sums(sums, of_even, of_odd);
  sums = ts_join_sums(std::fmaf(x, even, of_even), std::fmaf(x, odd, of_odd));
}
#define TS_SWIZZLE(at, lines, mask, vector) ((at) ^ (int)((unsigned)(at) / (lines) & (mask)) * (vector))
/* An element's place in a tile of panels: so many elements of each line, line after line. */
TS_INLINE int TS_PANELS(int at, int lines, int line, int panel) {
  const int row = at / line, column = at % line;
  return column / panel * (lines * panel) + row * panel + column % panel;
}

struct Index {
  int x, y, z;
};
struct Copy {
  char* to;
  const char* from;
  int bytes, count;
};
constexpr size_t kStackBytes = 1 << 17;  // of a thread; only a small part is touched
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  Index thread, block;
  int rank = 0;  // of its block in the cluster
  int warp = 0, lane = 0;
  bool done = false;
  long clusters = 0, blocks = 0, warps = 0;    // number of waits for its cluster, its block, its warp
  unsigned address = 0, a[4] = {}, b[2] = {};  // values that the other threads of the warp read
  std::vector<std::vector<Copy>> groups = {{}};
  std::vector<std::vector<std::function<void()>>> products = {{}};  // pending wgmma products, by group
  bool began_products = false;
};
static std::vector<std::unique_ptr<Fiber>> fibers;
static Fiber* self;
static ucontext_t scheduler;
static bool copies_are_early;
static long bank_conflicts;
static long broken_rules;         // violations by asynchronous instructions
static long progress;             // counts everything that a thread may wait for
static const int kMostBlocks = 2; /* of a cluster, which run at the same time */
static char shared_memory[kMostBlocks][1 << 18] __attribute__((aligned(1024)));
#define launch_shared (shared_memory[self->rank])
#define threadIdx (self->thread)
#define blockIdx (self->block)
#define __cluster_dims__(x, y, z)

static void yield() { swapcontext(&self->context, &scheduler); }
/* Until all others that are meant have come as far. */
template <class Meant>
static void wait_for(long Fiber::* count, Meant meant) {
  const long mine = ++(self->*count);
  for (;;) {
    bool all = true;
    for (const auto& f : fibers)
      if (meant(*f) && !f->done && (*f).*count < mine) all = false;
    if (all) return;
    yield();
  }
}
static void wait_for(bool block) {
  if (block)
    wait_for(&Fiber::blocks, [](const Fiber& f) { return f.rank == self->rank; });
  else
    wait_for(&Fiber::warps, [](const Fiber& f) { return f.rank == self->rank && f.warp == self->warp; });
}
static void __syncthreads() { wait_for(true); }
static void ts_meet_in_cluster() {
  wait_for(&Fiber::clusters, [](const Fiber&) { return true; });
}
static int threads_of_block;
static Fiber& lane_of_warp(int lane) {
  return *fibers[self->rank * threads_of_block + self->warp * 32 + lane];
}

static unsigned ts_shared(const void* place) { return (unsigned)((const char*)place - launch_shared); }
static uint16_t element(unsigned line, int at) {
  uint16_t value;
  memcpy(&value, launch_shared + (int)line + 2 * at, 2);
  return value;
}
/* Of a warp that reads an element each, in one cycle if these lie in different banks. */
static void ts_load_element(unsigned& r, unsigned place) {
  self->address = place;
  wait_for(false);
  for (int l = 0; l < self->lane; ++l) bank_conflicts += ((lane_of_warp(l).address ^ place) >> 2 & 31) == 0;
  memcpy(&r, launch_shared + (int)place, sizeof r);
  wait_for(false);
}
/* Matrix m has its lines where lanes 8 m .. 8 m + 7 say. A lane gets two neighbours of row lane / 4. */
static void load_matrices(unsigned* r, unsigned line, bool transposed) {
  self->address = line;
  wait_for(false);
  for (int m = 0; m < 4; ++m) {
    /* A matrix is read in one cycle if its lines lie in different banks. */
    for (int l = 0; l < self->lane && self->lane < 8; ++l)
      bank_conflicts +=
          ((lane_of_warp(8 * m + l).address ^ lane_of_warp(8 * m + self->lane).address) >> 4 & 7) == 0;
    uint16_t pair[2];
    for (int e = 0; e < 2; ++e) {
      const int row = self->lane / 4, column = 2 * (self->lane % 4) + e;
      pair[e] = transposed ? element(lane_of_warp(8 * m + column).address, row)
                           : element(lane_of_warp(8 * m + row).address, column);
    }
    r[m] = pair[0] | (unsigned)pair[1] << 16;
  }
  wait_for(false);
}
/* Of four neighbouring lanes: the i-th gets the i-th word of each, in their order. */
static void ts_transpose_quad(unsigned* w, int lane) {
  memcpy(self->a, w, sizeof self->a);
  wait_for(false);
  for (int q = 0; q < 4; ++q) w[q] = lane_of_warp(self->lane / 4 * 4 + q).a[lane % 4];
  wait_for(false);
}
static void ts_load_matrices(unsigned* r, unsigned line) { load_matrices(r, line, false); }
static void ts_load_transposed(unsigned* r, unsigned line) { load_matrices(r, line, true); }

/* The value of A's row and step, B's step and column, in registers of 32 / bits elements. */
template <int kBits, class Of>
static auto a_value(int row, int step, Of of) {
  const int in_register = 32 / kBits, half = step / (4 * in_register), rest = step % (4 * in_register);
  const Fiber& f = lane_of_warp(row % 8 * 4 + rest / in_register);
  return of(f.a[row / 8 + 2 * half] >> rest % in_register * kBits);
}
template <int kBits, class Of>
static auto b_value(int step, int column, Of of) {
  const int in_register = 32 / kBits, half = step / (4 * in_register), rest = step % (4 * in_register);
  const Fiber& f = lane_of_warp(column * 4 + rest / in_register);
  return of(f.b[half] >> rest % in_register * kBits);
}
template <int kBits, class Sum, class A, class B>
static void multiply(Sum& c0, Sum& c1, Sum& c2, Sum& c3, const unsigned* a, const unsigned* b, A of_a,
                     B of_b) {
  memcpy(self->a, a, sizeof self->a);
  memcpy(self->b, b, sizeof self->b);
  wait_for(false);
  Sum* sums[] = {&c0, &c1, &c2, &c3};
  for (int s = 0; s < 4; ++s) {
    const int row = self->lane / 4 + s / 2 * 8, column = self->lane % 4 * 2 + s % 2;
    for (int k = 0; k < 256 / kBits; ++k)
      *sums[s] += (Sum)a_value<kBits>(row, k, of_a) * (Sum)b_value<kBits>(k, column, of_b);
  }
  wait_for(false);
}
static float ts_load_f16(uint16_t stored);
static float f16_of(unsigned bits) { return ts_load_f16((uint16_t)bits); }
static float bf16_of(unsigned bits) { return ts_f32_of_bits(bits << 16); }
/* cvt.rna.tf32.f32: the nearest value of 11 bits, ties away from zero. */
static void ts_round_fragment(unsigned* r) {
  for (int i = 0; i < 4; ++i) {
    const float x = ts_f32_of_bits(r[i]);
    int exponent;
    if (!std::isfinite(x)) continue;
    std::frexp(x, &exponent);
    const double unit = std::ldexp(1.0, exponent - 11);
    r[i] = ts_bits_f32((float)(std::round(x / unit) * unit));
  }
}
/* Of other bits it is not said what happens to them. */
static float tf32_of(unsigned bits) {
  broken_rules += (bits & 0x1fff) != 0 ? 1 : 0;
  return ts_f32_of_bits(bits);
}
static int s8_of(unsigned bits) { return (int8_t)bits; }
static int u8_of(unsigned bits) { return (uint8_t)bits; }
#define TS_MMA(name, bits, sum, a_of, b_of)                                                    \
  static void name(sum& c0, sum& c1, sum& c2, sum& c3, const unsigned* a, const unsigned* b) { \
    multiply<bits>(c0, c1, c2, c3, a, b, a_of, b_of);                                          \
  }
TS_MMA(ts_mma_f16, 16, float, f16_of, f16_of)
TS_MMA(ts_mma_bf16, 16, float, bf16_of, bf16_of)
TS_MMA(ts_mma_tf32, 32, float, tf32_of, tf32_of)
TS_MMA(ts_mma_s8_s8, 8, int, s8_of, s8_of)
TS_MMA(ts_mma_s8_u8, 8, int, s8_of, u8_of)
TS_MMA(ts_mma_u8_s8, 8, int, u8_of, s8_of)
TS_MMA(ts_mma_u8_u8, 8, int, u8_of, u8_of)

/* Copies take place when they are begun, or not before they are waited for. */
static void note_write(const char* to, int bytes);
static void make(const Copy& copy) {
  note_write(copy.to, copy.bytes);
  memset(copy.to, 0, copy.bytes);
  memcpy(copy.to, copy.from, copy.count);
}
static void copy_ahead(int bytes, void* to, const void* from, int count) {
  const Copy copy = {(char*)to, (const char*)from, bytes, count};
  if (copies_are_early)
    make(copy);
  else
    self->groups.back().push_back(copy);
}
#define TS_COPY_AHEAD(bytes, to, from, count) copy_ahead(bytes, to, from, count)
static void ts_end_of_copies() { self->groups.emplace_back(); }
static void TS_WAIT_FOR_COPIES(size_t most) {
  for (size_t g = 0; g + 1 + most < self->groups.size(); ++g) {
    for (const Copy& copy : self->groups[g]) make(copy);
    self->groups[g].clear();
  }
}

#include "warpgroup_emulator.h"

/* Pointers are handed over, maps are where the argument points. */
template <class P>
static P argument(void* value) {
  if constexpr (std::is_pointer_v<P>)
    return static_cast<P>(value);
  else
    return *static_cast<P*>(value);
}
template <class... P, size_t... I>
static void call(void (*kernel)(P...), void** arguments, std::index_sequence<I...>) {
  kernel(argument<P>(arguments[I])...);
}
template <class... P>
static void call(void (*kernel)(P...), void** arguments) {
  call(kernel, arguments, std::index_sequence_for<P...>());
}

static void run_kernel(void** arguments);  // the kernel under test
static void** kernel_arguments;
static void enter() {
  run_kernel(kernel_arguments);
  self->done = true;
  swapcontext(&self->context, &scheduler);
}

/* cluster: blocks that run at the same time. last_first: warps run in the opposite order. Sets bank conflicts of loads of
   matrices, and how often a rule of the instructions was broken. Returns whether all threads came to the end. */
extern "C" bool emulate(void** arguments, const int* grid, const int* block, int cluster, int early,
                        int last_first, long* conflicts, long* broken) {
  copies_are_early = early != 0;
  bank_conflicts = broken_rules = 0;
  kernel_arguments = arguments;
  threads_of_block = block[0] * block[1] * block[2];
  const int warps = (threads_of_block + 31) / 32;
  for (int first = 0; first < grid[0] * grid[1] * grid[2]; first += cluster) {
    fibers.clear();
    barriers.clear();
    written_by.assign(written_by.size(), -1);
    memset(shared_memory, 0x7f, sizeof shared_memory);
    for (int i = 0; i < cluster * threads_of_block; ++i) {
      const int t = i % threads_of_block, at = first + i / threads_of_block;
      auto f = std::make_unique<Fiber>();
      f->thread = {t % block[0], t / block[0] % block[1], t / block[0] / block[1]};
      f->block = {at % grid[0], at / grid[0] % grid[1], at / grid[0] / grid[1]};
      f->rank = at - first;
      f->warp = t / 32;
      f->lane = t % 32;
      f->stack.reset(new char[kStackBytes]);
      getcontext(&f->context);
      f->context.uc_stack.ss_sp = f->stack.get();
      f->context.uc_stack.ss_size = kStackBytes;
      f->context.uc_link = nullptr;
      makecontext(&f->context, enter, 0);
      fibers.push_back(std::move(f));
    }
    const int all = cluster * warps;
    for (bool left = true; left;) {
      left = false;
      const long before_all = progress;
      for (int w = 0; w < all; ++w) {
        const int turn = last_first ? all - 1 - w : w, rank = turn / warps, warp = turn % warps;
        /* As far as the warp comes alone. */
        for (bool moved = true; moved;) {
          moved = false;
          for (int lane = 0; lane < 32 && warp * 32 + lane < threads_of_block; ++lane) {
            Fiber& f = *fibers[rank * threads_of_block + warp * 32 + lane];
            if (f.done) continue;
            const long before = f.warps + f.blocks + f.clusters;
            self = &f;
            swapcontext(&scheduler, &f.context);
            const bool came = f.warps + f.blocks + f.clusters != before;
            moved = moved || (!f.done && came);
            left = left || !f.done;
            progress += f.done || came ? 1 : 0;
          }
        }
      }
      if (left && progress == before_all) return false;
    }
    for (const auto& f : fibers)
      broken_rules += f->products.size() > 1 || !f->products.back().empty() ? 1 : 0;
  }
  *conflicts = bank_conflicts;
  *broken = broken_rules;
  return true;
}
