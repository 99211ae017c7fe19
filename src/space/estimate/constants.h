// All fitted constants of the CPU estimate, in one table.
//
// The abilities of a processor (rates, latencies, caches) are in its device file. These constants
// describe how well compiled loops use them. Each row names its source:
//
//   fitted    to measured kernels (docs/decisions/008-estimate.md; 006,
//             007, 009 and 025 for single plans)
//   counted   in generated code
//   chosen    for the use that the row names, although another row describes the same effect: with
//             the value of the other row, default schedules get slower
//             (docs/decisions/008-estimate.md)
//   seen      with one network on one processor
//
// `bench_estimate fit tests/data/estimate/measurements.jsonl NAME...` multiplies each named
// constant by a quarter to four and prints how well the estimate then orders the stored
// measurements. `descend` searches for better values of all constants.
#pragma once

#include <span>

// CONSTANT(name, value, unit, source, what it is)
#define TENSORSMITH_ESTIMATE_CONSTANTS(CONSTANT)                                                             \
  /* Overlap */                                                                                              \
  CONSTANT(not_hidden, 0.6, "share", "fitted",                                                               \
           "share of the shorter of two overlapping times that adds to the longer one")                      \
  CONSTANT(not_hidden_blocks, 0.3, "share", "chosen", "not_hidden for window, Winograd and attention plans") \
  CONSTANT(not_hidden_l2, 0.25, "share", "fitted", "not_hidden for products with an operand from L2")        \
  /* Register tiles */                                                                                       \
  CONSTANT(latency_slack, 2, "times", "fitted", "time of a chain of dependent products, over their latency") \
  CONSTANT(looked_ahead, 0.4, "share", "fitted",                                                             \
           "share of the reorder buffer left to later sums while products of a sum wait")                    \
  CONSTANT(vector_operations, 1.25, "times", "fitted",                                                       \
           "vector operations of all kinds per cycle, over products per cycle")                              \
  CONSTANT(broadcasts, 0.8, "1/cycle", "fitted",                                                             \
           "loads in dot products: vectors twice as wide as the units, broadcast elements")                  \
  CONSTANT(spill, 2, "cycles", "counted", "store and load of a register that is spilled")                    \
  CONSTANT(forwarded, 3, "cycles", "fitted", "latency from a store to a load of the same address")           \
  CONSTANT(registers_crowded, 3.25, "registers", "fitted",                                                   \
           "registers left beside accumulators and operands, below which loads wait")                        \
  CONSTANT(crowded, 0.012, "share", "fitted", "slowdown for each register missing to registers_crowded")     \
  CONSTANT(stored_each_step, 0.2, "cycles", "fitted",                                                        \
           "per accumulator, if accumulators and operand vectors exceed the registers")                      \
  CONSTANT(odd_lanes_masked, 1.25, "times", "fitted",                                                        \
           "slowdown of vectors of 3, 5, 14, ... lanes that are accessed under masks")                       \
  CONSTANT(odd_lanes, 1.4, "times", "fitted", "slowdown of such vectors that are accessed in pieces")        \
  CONSTANT(loop_step, 1, "cycles", "counted", "iteration of a loop, shared by the copies unrolled in it")    \
  CONSTANT(loop_exit, 8.4, "cycles", "fitted",                                                               \
           "exit of a loop: a mispredicted branch and the set-up of addresses")                              \
  CONSTANT(code_size, 20000, "instructions", "fitted", "unrolled instructions that double the time")         \
  CONSTANT(accumulator_move, 1, "cycles", "fitted", "an accumulator that is loaded or cleared, and stored")  \
  CONSTANT(alias_bytes, 1024, "bytes", "fitted", "distance whose multiples fall into few sets of L1")        \
  CONSTANT(not_local, 1.1, "times", "fitted",                                                                \
           "slowdown of accumulating in the output instead of a local buffer")                               \
  /* Strided, guarded, copied and transformed vectors */                                                     \
  CONSTANT(strided_element, 2, "cycles", "fitted",                                                           \
           "an element of a strided vector that is assembled one by one")                                    \
  CONSTANT(gathered_element, 2, "cycles", "fitted", "an element whose index is not affine")                  \
  CONSTANT(guarded_load, 1.2, "times", "fitted",                                                             \
           "a load for products under a condition evaluated lane by lane")                                   \
  CONSTANT(guarded_setup, 0.5, "cycles", "fitted", "in addition for each such load")                         \
  CONSTANT(guarded_strided, 5, "cycles", "fitted", "wait for such a load of a strided vector")               \
  CONSTANT(guarded_vector, 3, "times", "fitted", "a load under a condition in elementwise stages")           \
  CONSTANT(transposed_element, 0.2, "cycles", "fitted",                                                      \
           "an element moved between planes and rows of channels, in blocks")                                \
  CONSTANT(scattered_store, 1.68, "cycles", "fitted", "an element that is stored by itself")                 \
  CONSTANT(aliased_store, 4, "cycles", "fitted",                                                             \
           "such an element if rows are a multiple of alias_bytes apart")                                    \
  CONSTANT(written_vector, 2, "cycles", "counted", "a vector of results: load and store")                    \
  CONSTANT(copied_vector, 6, "cycles", "fitted", "a vector of an operand that is copied")                    \
  CONSTANT(copied_element, 1.5, "cycles", "chosen",                                                          \
           "an element of an operand that is copied element by element")                                     \
  CONSTANT(padded_vector, 3, "cycles", "fitted", "a vector of a tensor that is padded as a whole")           \
  CONSTANT(padded_vector_tile, 5, "cycles", "chosen", "a vector of a tile that is padded")                   \
  CONSTANT(copy_tile, 15, "cycles", "fitted",                                                                \
           "loads of a window that wait for the stores of its padded tile")                                  \
  CONSTANT(transform_load, 0.6, "cycles", "fitted", "a vector that a Winograd transform loads")              \
  CONSTANT(transform_store, 1.2, "cycles", "fitted", "a vector that a Winograd transform stores")            \
  /* Tails */                                                                                                \
  CONSTANT(tail_vector, 1.4, "times", "fitted",                                                              \
           "slowdown of a loop whose tail condition is evaluated lane by lane")                              \
  CONSTANT(tail_scalar, 1.15, "times", "fitted",                                                             \
           "slowdown of a loop whose tail condition is evaluated in each iteration")                         \
  CONSTANT(tail_masked, 1.1, "times", "fitted", "upper bound of both on machines with masked vectors")       \
  CONSTANT(tail_masked_window, 4, "times", "chosen", "tail_masked for sliding windows")                      \
  CONSTANT(tail_spatial, 1.4, "times", "chosen",                                                             \
           "slowdown of an elementwise loop with a tail condition per vector")                               \
  /* Caches */                                                                                               \
  CONSTANT(usable, 0.75, "share", "fitted",                                                                  \
           "share of a cache that can be filled before it evicts data needed again")                         \
  CONSTANT(usable_shared, 0.4, "share", "fitted",                                                            \
           "usable for a core's part of L3 with operands of products")                                       \
  CONSTANT(usable_once, 1, "share", "chosen", "usable for L2 and L3 with data that is moved once")           \
  CONSTANT(usable_planes, 0.6, "share", "fitted",                                                            \
           "usable for L2 with the planes between the stages of Winograd")                                   \
  CONSTANT(cold_weights, 1.6, "times", "seen",                                                               \
           "time of weights from memory, over that at the device's bandwidth")                               \
  CONSTANT(scattered, 2.5, "times", "fitted", "time of lines that no prefetcher follows, over a stream")     \
  CONSTANT(near_lines, 0.6, "times", "fitted",                                                               \
           "time of short pieces of rows less than half a page apart, over a stream")                        \
  CONSTANT(crowded_ways, 1.5, "times", "fitted",                                                             \
           "ways that rows take in their sets, above which they count as filling them")                      \
  CONSTANT(conflict, 0.8, "times", "fitted",                                                                 \
           "wait for lines that share too few sets, over the time to move them")                             \
  CONSTANT(tlb_hit, 0.3, "times", "fitted",                                                                  \
           "wait for rows pages apart that the TLB covers, over the time to move them")                      \
  CONSTANT(prefetched_streams, 12, "streams", "fitted", "streams that prefetchers can follow")               \
  CONSTANT(not_prefetched, 3, "times", "fitted",                                                             \
           "wait if there are more streams, over the time to move their data")                               \
  CONSTANT(stream_bytes, 64, "bytes", "fitted",                                                              \
           "contiguous bytes of a row from which on prefetchers follow it")                                  \
  CONSTANT(row_start, 1.5, "cycles", "fitted",                                                               \
           "start of a piece of a row in another page than the last piece, from L2")                         \
  CONSTANT(row_start_beyond, 40, "cycles", "fitted", "start of such a piece from L3 or memory")              \
  /* Rows */                                                                                                 \
  CONSTANT(row_sum, 60, "cycles", "counted",                                                                 \
           "reductions over the lanes of a row in a softmax: maximum and sum")                               \
  CONSTANT(written_row, 4, "cycles", "counted", "a row of a register tile that is written")                  \
  CONSTANT(row_pass, 3, "cycles", "counted",                                                                 \
           "a vector of a row in all passes of a softmax, without the arithmetic")                           \
  CONSTANT(halving, 3, "cycles", "counted", "a step that halves the lanes of a sum")                         \
  CONSTANT(overlapped_rows, 0.5, "share", "fitted",                                                          \
           "part of the reorder buffer in which sums of rows overlap")                                       \
  /* Windows */                                                                                              \
  CONSTANT(window_tile, 8, "cycles", "counted", "a tile: loop, addresses, conditions of the border")         \
  CONSTANT(window_crossing, 1.2, "times", "fitted", "slowdown of loads half of which cross a cache line")    \
  CONSTANT(window_strided, 0.7, "times", "fitted", "vectors loaded for a strided vector, over its stride")   \
  CONSTANT(window_border_row, 0.5, "cycles", "counted",                                                      \
           "a load whose row is guarded by selecting an address")                                            \
  CONSTANT(window_border, 2, "cycles", "fitted", "a load that is guarded by a mask")                         \
  CONSTANT(window_registers, 4, "registers", "counted",                                                      \
           "registers needed besides the operands that stay in registers")                                   \
  CONSTANT(window_epilogue, 0.5, "cycles", "counted", "an operation of the stage after the window")          \
  CONSTANT(window_measured, 1.8, "times", "fitted", "measured time over the sum of the estimated parts")     \
  CONSTANT(window_instructions, 12, "instructions", "fitted",                                                \
           "entries of the reorder buffer for a point of the window")                                        \
  /* Elementwise */                                                                                          \
  CONSTANT(vector_step, 0.5, "cycles", "counted",                                                            \
           "iteration of a loop over vectors, shared by its unrolled copies")                                \
  CONSTANT(strided_line, 6, "cycles", "fitted",                                                              \
           "wait for a cache line that a strided read fetches from beyond L1")                               \
  CONSTANT(elementwise_strided, 1, "cycles", "fitted", "strided_element, in elementwise stages")             \
  CONSTANT(overfull_sets, 3, "times", "fitted",                                                              \
           "lines beyond those that their sets of L1 hold, over these, at which each is fetched again")      \
  CONSTANT(plain_point, 5, "cycles", "counted", "a point of a loop nest that is not scheduled")              \
  /* Matrix units, emulated instructions */                                                                  \
  CONSTANT(tile_product, 16, "cycles", "counted", "a product of two tiles of a matrix unit")                 \
  CONSTANT(tile_load, 8, "cycles", "counted",                                                                \
           "load or store of a tile of a matrix unit: 16 rows, two per cycle")                               \
  CONSTANT(emulated_dot4, 5, "instructions", "counted", "in place of one that adds four products of bytes")  \
  CONSTANT(emulated_dot4_narrow, 2, "instructions", "counted",                                               \
           "emulated_dot4 if sums of two products fit in i16: two multiplications, and a sum, which more "   \
           "units can execute")                                                                              \
  CONSTANT(                                                                                                  \
      emulated_dot2_i16, 1.34, "instructions", "counted",                                                    \
      "in place of one that adds two products of i16: a product, and a sum, which more units can execute")   \
  CONSTANT(emulated_dot2, 3, "instructions", "counted", "in place of one that adds two products of bf16")

namespace tensorsmith::space {

struct Constants {
#define TENSORSMITH_MEMBER(name, value, unit, source, meaning) double name = value;
  TENSORSMITH_ESTIMATE_CONSTANTS(TENSORSMITH_MEMBER)
#undef TENSORSMITH_MEMBER
};

struct ConstantInfo {
  const char* name;
  double Constants::* member;
  const char* unit;
  const char* source;
  const char* meaning;
};

std::span<const ConstantInfo> constant_table();
// The values in the table.
const Constants& default_constants();

}  // namespace tensorsmith::space
