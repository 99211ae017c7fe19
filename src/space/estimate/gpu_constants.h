// The constants of the estimate of GPUs: all of them, each once. What a device can do stands in its file.
#pragma once

#include <span>

// CONSTANT(name, value, unit, source, what it is)
#define TENSORSMITH_GPU_CONSTANTS(CONSTANT)                                                                  \
  CONSTANT(fma_latency, 4, "cycles", "CUDA C++ Best Practices Guide, 7.0 and later",                         \
           "of an FMA whose result is waited for")                                                           \
  CONSTANT(issue_width, 4, "instructions", "four schedulers of a multiprocessor",                            \
           "of warps, issued a cycle")                                                                       \
  CONSTANT(access_cycles, 1, "cycles", "one access of a warp a cycle",                                       \
           "of the memory pipe, of an access of device memory")                                              \
  CONSTANT(not_hidden, 0.2, "share", "chosen", "of the shorter of two things that go on together")           \
  CONSTANT(memory_latency, 500, "cycles", "Jia et al., Dissecting the Volta architecture (2018), table 3.1", \
           "of an access of device memory")                                                                  \
  CONSTANT(block_start, 200, "cycles", "chosen", "until a block's first instruction")                        \
  CONSTANT(l2_bytes_per_cycle, 48, "bytes", "Jia et al., section 3.5: 64 at the peak",                       \
           "from L2, a multiprocessor")                                                                      \
  CONSTANT(l1_misses, 0.3, "share", "chosen",                                                                \
           "of the sectors that the steps of a loop read, which L1 does not hold")                           \
  CONSTANT(copy_instructions, 12, "instructions", "counted",                                                 \
           "of a warp, for the address of an element that is copied into shared memory")                     \
  CONSTANT(pad_instructions, 10, "instructions", "counted",                                                  \
           "the same, for the guard of an element of padding")                                               \
  CONSTANT(read_instructions, 6, "instructions", "counted",                                                  \
           "of a warp, for the address of an element that is read")                                          \
  CONSTANT(meeting_cycles, 30, "cycles", "chosen", "until all threads of a block have met")                  \
  CONSTANT(l2_share, 0.7, "share", "chosen", "of L2 that holds what blocks read again")                      \
  CONSTANT(scattered, 64, "bytes", "chosen", "from lane to lane where it is not known")                      \
  CONSTANT(warps_for_bandwidth, 16, "warps", "Little's law with 128 bytes a warp",                           \
           "of a multiprocessor, that reach the memory's bandwidth")                                         \
  CONSTANT(memory_share, 0.85, "share", "streams on V100 and A100 reach .8 to .9",                           \
           "of the memory's bandwidth that kernels reach")

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
