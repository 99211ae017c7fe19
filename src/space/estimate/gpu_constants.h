// All constants of the GPU estimate, in one table. The abilities of a device are in its file. Their
// sources:
//
//   fitted    to programs of NASNet on three GPUs (docs/decisions/045-the-estimate-of-gpus.md),
//             coarsely: none is known to better than a factor of 1.5
//   measured  with the programs that are named there
//   chosen    together with the fitted ones, where the fit did not determine a value
//   a name    a publication
#pragma once

// CONSTANT(name, value, unit, source, what it is)
#define TENSORSMITH_GPU_CONSTANTS(CONSTANT)                                                                  \
  /* Arithmetic */                                                                                           \
  CONSTANT(product, 0.6, "times", "fitted", "cycles of products, over those at the device's rate")           \
  CONSTANT(few_warps, 2, "warps", "fitted", "of a multiprocessor, whose products take twice as long")        \
  CONSTANT(pressure, 0.3, "share", "fitted", "of a thread's registers that values can take at no cost")      \
  CONSTANT(crowded, 0.6, "share", "fitted", "longer where they take more")                                   \
  CONSTANT(crowded_more, 1.2, "share", "fitted", "longer where they take all registers more")                \
  CONSTANT(most_crowded, 2, "times", "fitted", "all registers, beyond which nothing changes")                \
  CONSTANT(value, 0.5, "cycles", "fitted", "of a warp, for an operand's value from shared memory")           \
  CONSTANT(bank_wait, 0.1, "cycles", "fitted", "for each that a value waits for its bank")                   \
  CONSTANT(step, 1, "cycles", "fitted", "of a warp, for a step of the reduction")                            \
  /* Arithmetic if copies into shared memory run ahead */                                                    \
  CONSTANT(product_ahead, 1.26, "times", "173 f32 products on an H100",                                      \
           "cycles of products and loads, over those at the device's rate")                                  \
  CONSTANT(alone_ahead, 0.32, "share", "the same", "longer for products of the only warp of a scheduler")    \
  CONSTANT(usual_products, 64, "products", "the same",                                                       \
           "of a thread for which alone_ahead is; it is less with more of them")                             \
  CONSTANT(pressure_ahead, 0.8, "share", "the same",                                                         \
           "of a thread's registers that values can take at no cost")                                        \
  CONSTANT(fetch, 12, "cycles", "the same",                                                                  \
           "for a product of a long body, over the warps that share its fetch")                              \
  CONSTANT(long_body, 1024, "products", "chosen", "of a thread without a loop: a body with more is long")    \
  CONSTANT(compilers_body, 256, "products", "chosen",                                                        \
           "of a thread: up to so many the compiler unrolls a loop itself")                                  \
  CONSTANT(iteration_ahead, 200, "products", "the same",                                                     \
           "for an iteration of a loop, over the warps that hide it")                                        \
  CONSTANT(meeting_ahead, 1.2, "waits", "the same", "of the only block, until all of its threads have met")  \
  CONSTANT(padded_copy, 4, "cycles", "the same", "longer for a warp's access that fills padded rows")        \
  CONSTANT(odd_copy, 15, "cycles", "chosen", "the same of threads whose number is not a power of two")       \
  CONSTANT(product_pairs, 1.12, "times", "scripts/count_register_banks; 30 f32 products on an H200: 1.00",   \
           "cycles of products whose sums are in pairs of registers, over those at the device's rate")       \
  CONSTANT(pair_row, 1.8, "cycles", "counted likewise", "longer for a row of such products")                 \
  CONSTANT(pressure_pairs, 0.95, "share", "chosen: 8 x 8 sums of 512 threads lose their pairs",              \
           "of a thread's registers that values of such products can take at no cost")                       \
  /* Accesses */                                                                                             \
  CONSTANT(access, 1.3, "cycles", "fitted", "of an access of a warp")                                        \
  CONSTANT(sector, 0.15, "cycles", "fitted", "for each sector that it touches")                              \
  CONSTANT(line, 1, "cycles", "fitted", "for each cache line of a block's tile")                             \
  CONSTANT(moved, 1, "cycles", "fitted", "for an element of each lane that is copied")                       \
  CONSTANT(guarded, 10, "cycles", "fitted", "the same where it may be padding")                              \
  CONSTANT(few_accesses, 25, "warps", "fitted", "of a multiprocessor, whose accesses take twice as long")    \
  CONSTANT(store_sector, 1, "cycles", "fitted", "for each sector that a warp's store touches")               \
  CONSTANT(wait, 300, "cycles", "fitted", "of resident blocks, for device memory")                           \
  CONSTANT(block_start, 400, "cycles", "fitted", "until resident blocks begin")                              \
  CONSTANT(misses, 0.3, "share", "chosen", "of what a loop reads in place that L1 does not hold")            \
  CONSTANT(meeting, 0.1, "waits", "chosen", "until all threads of a block have met")                         \
  CONSTANT(scattered, 64, "bytes", "chosen", "from lane to lane where it is not known")                      \
  /* Tensor cores */                                                                                         \
  CONSTANT(mma_cycles_turing, 4, "cycles", "512 FMAs of f16 a cycle: Turing architecture whitepaper",        \
           "of a multiprocessor, a product of 16 x 8 x 16 elements of f16: sm_75")                           \
  CONSTANT(mma_cycles_a100, 2, "cycles", "1024 FMAs a cycle: A100 architecture whitepaper",                  \
           "the same: sm_80")                                                                                \
  CONSTANT(mma_cycles_ampere, 4, "cycles", "512 FMAs a cycle: GA102 and Ada architecture whitepapers",       \
           "the same: sm_86 to sm_89")                                                                       \
  CONSTANT(mma_cycles_hopper, 1.6, "cycles",                                                                 \
           "2048 FMAs a cycle, of which mma.sync reaches 62 %: Luo et al. (2024)", "the same: sm_90 and up") \
  CONSTANT(wgmma_cycles, 1.5, "cycles",                                                                      \
           "measured on an H100: f16 products of 2048 and 8192, 683 TFLOP/s (cuBLAS: 765)",                  \
           "the same by warpgroups, whose operands a warp of its own brings: sm_90a")                        \
  CONSTANT(wgmma_cluster, 0.97, "times", "100 % with clusters, 97 % without: the same kernels",              \
           "of these in clusters")                                                                           \
  CONSTANT(wgmma_bytes, 128, "bytes", "a bank's word a cycle", "of operands, a cycle of a multiprocessor")   \
  CONSTANT(wgmma_meeting, 1.3, "times",                                                                      \
           "61 % with TMA, 80 % with producer and consumer warps: the same kernels",                         \
           "longer where the threads that compute meet between chunks")                                      \
  CONSTANT(wgmma_threads_copy, 1.6, "times", "about half the library's speed without TMA: the same",         \
           "longer where these threads also copy")                                                           \
  CONSTANT(wgmma_one_group, 1.25, "times", "chosen",                                                         \
           "longer where one warpgroup computes, which also stores")                                         \
  CONSTANT(l2_share, 0.7, "share", "chosen", "of L2 that holds what blocks read again")                      \
  CONSTANT(fragment_loads, 2, "cycles", "512 bytes at 128 a cycle, half of it beside products",              \
           "of a warp, for fragments that ldmatrix loads")                                                   \
  CONSTANT(tf32_rounding, 0.5, "cycles", "64 conversions a cycle: CUDA C++ Programming Guide, arithmetic",   \
           "of a warp's 32 values")                                                                          \
  /* Device memory */                                                                                        \
  CONSTANT(memory, 1.15, "times", "fitted", "time of bytes, over that at the device's bandwidth")            \
  CONSTANT(memory_again, 0.6, "times", "fitted", "the same of bytes that come again, some of them from L2")  \
  CONSTANT(warps_for_bandwidth, 16, "warps", "chosen", "of each multiprocessor, that reach the bandwidth")   \
  CONSTANT(not_hidden, 0.1, "share", "fitted", "of the shorter of multiprocessors' and memory's time")       \
  /* Error of the estimate for the program that it ranks fastest: bench_gpu_estimate with 87 tasks */        \
  /* of ResNet-50 and BERT in f32, programs of Ansor, on V100, K80, MI50 and RTX 2080 Ti. None of */         \
  /* them was used to choose constants. For our own programs on an H100: docs/results/gpus.json */           \
  CONSTANT(error_sigma, 0.65, "log", "measured", "root mean square of log(measured / estimated)")            \
  CONSTANT(error_90, 0.70, "log", "measured", "size of log(measured / estimated) that holds 90 %")

namespace tensorsmith::space {

struct GpuConstants {
#define TENSORSMITH_MEMBER(name, value, unit, source, meaning) double name = value;
  TENSORSMITH_GPU_CONSTANTS(TENSORSMITH_MEMBER)
#undef TENSORSMITH_MEMBER
};

inline const GpuConstants& gpu_constants() {
  static constexpr GpuConstants kConstants;
  return kConstants;
}

}  // namespace tensorsmith::space
