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
  CONSTANT(few_warps, 2, "warps", "fitted",                                                                  \
           "resident warps of a multiprocessor with which products take twice as long")                      \
  CONSTANT(pressure, 0.3, "share", "fitted",                                                                 \
           "share of a thread's registers that live values can take without a slowdown")                     \
  CONSTANT(crowded, 0.6, "share", "fitted", "slowdown if live values take a larger share")                   \
  CONSTANT(crowded_more, 1.2, "share", "fitted",                                                             \
           "further slowdown for each 100 % of the registers beyond that share")                             \
  CONSTANT(most_crowded, 2, "times", "fitted",                                                               \
           "excess over that share, in 100 % of the registers, with the largest slowdown")                   \
  CONSTANT(value, 0.5, "cycles", "fitted", "of a warp, to read an operand's value from shared memory")       \
  CONSTANT(bank_wait, 0.1, "cycles", "fitted", "for each cycle that such a read loses to bank conflicts")    \
  CONSTANT(step, 1, "cycles", "fitted", "of a warp, for a step of the reduction")                            \
  /* Arithmetic if copies into shared memory run ahead */                                                    \
  CONSTANT(product_ahead, 1.26, "times", "173 f32 products on an H100",                                      \
           "cycles of products and loads, over those at the device's rate")                                  \
  CONSTANT(alone_ahead, 0.32, "share", "173 f32 products on an H100",                                        \
           "slowdown of products if a scheduler has a single warp")                                          \
  CONSTANT(usual_products, 64, "products", "173 f32 products on an H100",                                    \
           "products of a thread for which alone_ahead holds; with more, it is less")                        \
  CONSTANT(pressure_ahead, 0.8, "share", "173 f32 products on an H100", "pressure, if copies run ahead")     \
  CONSTANT(fetch, 12, "cycles", "173 f32 products on an H100",                                               \
           "for each product of a long loop body, divided by the warps that share its instructions")         \
  CONSTANT(long_body, 1024, "products", "chosen",                                                            \
           "products of a thread in an unrolled loop body above which the body is long")                     \
  CONSTANT(compilers_body, 256, "products", "chosen",                                                        \
           "products of a thread up to which the compiler unrolls a loop by itself")                         \
  CONSTANT(iteration_ahead, 200, "products", "173 f32 products on an H100",                                  \
           "for an iteration of a loop, divided by the warps that hide it")                                  \
  CONSTANT(meeting_ahead, 1.2, "waits", "173 f32 products on an H100",                                       \
           "for a chunk, until all threads of the only block reach a barrier")                               \
  CONSTANT(padded_copy, 4, "cycles", "173 f32 products on an H100",                                          \
           "added to a warp's access that fills padded rows")                                                \
  CONSTANT(odd_copy, 15, "cycles", "chosen",                                                                 \
           "added to a warp's access if the threads are not a power of two")                                 \
  CONSTANT(product_pairs, 1.12, "times", "scripts/count_register_banks; 30 f32 products on an H200: 1.00",   \
           "cycles of products whose sums are in pairs of registers, over those at the device's rate")       \
  CONSTANT(pair_row, 1.8, "cycles", "scripts/count_register_banks", "added for a row of such products")      \
  CONSTANT(pressure_pairs, 0.95, "share", "chosen: 8 x 8 sums of 512 threads lose their pairs",              \
           "pressure, for such products")                                                                    \
  /* Accesses */                                                                                             \
  CONSTANT(access, 1.3, "cycles", "fitted", "of a warp, for an access")                                      \
  CONSTANT(sector, 0.15, "cycles", "fitted", "for each sector that the access touches")                      \
  CONSTANT(line, 1, "cycles", "fitted", "for each cache line of a block's tile")                             \
  CONSTANT(moved, 1, "cycles", "fitted", "for an element of each lane that is copied into shared memory")    \
  CONSTANT(guarded, 10, "cycles", "fitted", "added for such an element that may be padding")                 \
  CONSTANT(few_accesses, 25, "warps", "fitted",                                                              \
           "resident warps of a multiprocessor with which accesses take twice as long")                      \
  CONSTANT(store_sector, 1, "cycles", "fitted", "for each sector that a warp's store touches")               \
  CONSTANT(wait, 300, "cycles", "fitted", "that resident blocks wait for device memory")                     \
  CONSTANT(block_start, 400, "cycles", "fitted", "until resident blocks begin")                              \
  CONSTANT(misses, 0.3, "share", "chosen",                                                                   \
           "share of cache lines read in place, without shared memory, that miss L1")                        \
  CONSTANT(meeting, 0.1, "waits", "chosen", "until all threads of a block reach a barrier")                  \
  CONSTANT(scattered, 64, "bytes", "chosen",                                                                 \
           "assumed distance of neighbouring lanes whose elements are not contiguous")                       \
  /* Tensor cores */                                                                                         \
  CONSTANT(mma_cycles_turing, 4, "cycles", "512 FMAs of f16 per cycle: Turing architecture whitepaper",      \
           "of a multiprocessor, for a product of 16 x 8 x 16 elements of f16: sm_75")                       \
  CONSTANT(mma_cycles_a100, 2, "cycles", "1024 FMAs per cycle: A100 architecture whitepaper",                \
           "for such a product: sm_80")                                                                      \
  CONSTANT(mma_cycles_ampere, 4, "cycles", "512 FMAs per cycle: GA102 and Ada architecture whitepapers",     \
           "for such a product: sm_86 to sm_89")                                                             \
  CONSTANT(mma_cycles_hopper, 1.6, "cycles",                                                                 \
           "2048 FMAs per cycle, of which mma.sync reaches 62 %: Luo et al. (2024)",                         \
           "for such a product: sm_90 and up")                                                               \
  CONSTANT(wgmma_cycles, 1.5, "cycles",                                                                      \
           "measured on an H100: f16 products of 2048 and 8192, 683 TFLOP/s (cuBLAS: 765)",                  \
           "for such a product by warpgroups whose operands are copied by a separate warp: sm_90a")          \
  CONSTANT(wgmma_cluster, 0.97, "times", "100 % of cuBLAS with clusters, 97 % without: public bf16 kernels", \
           "cycles of products in clusters, over those without")                                             \
  CONSTANT(wgmma_bytes, 128, "bytes", "32 banks with a word of 4 bytes per cycle each",                      \
           "operand bytes that a multiprocessor reads from shared memory per cycle")                         \
  CONSTANT(wgmma_meeting, 1.3, "times",                                                                      \
           "61 % of cuBLAS with TMA, 80 % with producer and consumer warps: public bf16 kernels",            \
           "slowdown if the threads that compute synchronize between chunks")                                \
  CONSTANT(wgmma_threads_copy, 1.6, "times",                                                                 \
           "about half of cuBLAS's speed without TMA: public bf16 kernels",                                  \
           "slowdown if these threads also copy the operands")                                               \
  CONSTANT(wgmma_one_group, 1.25, "times", "chosen",                                                         \
           "slowdown if a single warpgroup computes, which also stores the results")                         \
  CONSTANT(l2_share, 0.7, "share", "chosen",                                                                 \
           "share of L2 that operands can take and still be there when blocks read them again")              \
  CONSTANT(fragment_loads, 2, "cycles", "512 bytes at 128 per cycle, half of it hidden by products",         \
           "of a warp, for fragments that ldmatrix loads")                                                   \
  CONSTANT(tf32_rounding, 0.5, "cycles", "64 conversions per cycle: CUDA C++ Programming Guide, arithmetic", \
           "of a warp, to round 32 values")                                                                  \
  /* Device memory */                                                                                        \
  CONSTANT(memory, 1.15, "times", "fitted", "time of bytes, over that at the device's bandwidth")            \
  CONSTANT(memory_again, 0.6, "times", "fitted",                                                             \
           "time of bytes that are read again, partly from L2, over that at the device's bandwidth")         \
  CONSTANT(warps_for_bandwidth, 16, "warps", "chosen",                                                       \
           "resident warps of each multiprocessor that reach the bandwidth, with words of 4 bytes")          \
  CONSTANT(not_hidden, 0.1, "share", "fitted",                                                               \
           "share of the shorter of arithmetic and memory time that adds to the longer one")                 \
  /* Error of the estimate for the program that it ranks fastest: bench_gpu_estimate with 87 tasks */        \
  /* of ResNet-50 and BERT in f32, programs of Ansor, on V100, K80, MI50 and RTX 2080 Ti. None of */         \
  /* them was used to choose constants. For our own programs on an H100: docs/results/gpus.json */           \
  CONSTANT(error_sigma, 0.65, "log", "measured", "root mean square of log(measured / estimated)")            \
  CONSTANT(error_90, 0.70, "log", "measured", "bound of |log(measured / estimated)| for 90 % of the tasks")

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
