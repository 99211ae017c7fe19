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
  CONSTANT(not_hidden, 0.6, "share", "fitted", "of the shorter of two things that go on together")           \
  CONSTANT(not_hidden_blocks, 0.3, "share", "chosen", "the same of windows, Winograd and attention")         \
  CONSTANT(not_hidden_l2, 0.25, "share", "fitted", "the same of products whose operand comes from L2")       \
  /* Register tiles */                                                                                       \
  CONSTANT(latency_slack, 2, "times", "fitted", "the latency that a chain of dependent products takes")      \
  CONSTANT(looked_ahead, 0.4, "share", "fitted",                                                             \
           "of the reorder buffer that waiting products leave to other sums")                                \
  CONSTANT(vector_operations, 1.25, "times", "fitted",                                                       \
           "vector operations of all kinds a cycle, over products")                                          \
  CONSTANT(broadcasts, 0.8, "1/cycle", "fitted", "loads of wide vectors and of elements in all lanes")       \
  CONSTANT(spill, 2, "cycles", "counted", "a store and a load of a register that is one too many")           \
  CONSTANT(forwarded, 3, "cycles", "fitted", "from a store to a load of the same place")                     \
  CONSTANT(registers_crowded, 3.25, "registers", "fitted",                                                   \
           "left beside accumulators, below which loads wait")                                               \
  CONSTANT(crowded, 0.012, "share", "fitted", "longer for each register that is missing to these")           \
  CONSTANT(stored_each_step, 0.2, "cycles", "fitted",                                                        \
           "an accumulator that does not fit beside the operands")                                           \
  CONSTANT(odd_lanes_masked, 1.25, "times", "fitted", "vectors of 3, 5, 14, ... lanes under masks")          \
  CONSTANT(odd_lanes, 1.4, "times", "fitted", "the same in pieces")                                          \
  CONSTANT(loop_step, 1, "cycles", "counted", "of a loop, shared by what is unrolled in it")                 \
  CONSTANT(loop_exit, 8.4, "cycles", "fitted",                                                               \
           "a loop that is left: a branch not foreseen, addresses set up")                                   \
  CONSTANT(code_size, 20000, "instructions", "fitted", "of unrolled code that double its time")              \
  CONSTANT(accumulator_move, 1, "cycles", "fitted", "an accumulator that is loaded or cleared, and stored")  \
  CONSTANT(alias_bytes, 1024, "bytes", "fitted", "distance of addresses that share a set of L1, nearly")     \
  CONSTANT(not_local, 1.1, "times", "fitted", "accumulating in the output instead of a place of its own")    \
  /* Strided, guarded, copied and transformed vectors */                                                     \
  CONSTANT(strided_element, 2, "cycles", "fitted", "an element of a strided vector that is put together")    \
  CONSTANT(gathered_element, 2, "cycles", "fitted", "an element whose place is computed")                    \
  CONSTANT(guarded_load, 1.2, "times", "fitted",                                                             \
           "a load of products under a condition decided lane by lane")                                      \
  CONSTANT(guarded_setup, 0.5, "cycles", "fitted", "more for each of these")                                 \
  CONSTANT(guarded_strided, 5, "cycles", "fitted", "that one of a strided vector is waited for")             \
  CONSTANT(guarded_vector, 3, "times", "fitted", "a load under a condition in elementwise stages")           \
  CONSTANT(transposed_element, 0.2, "cycles", "fitted", "between planes and rows of channels, in blocks")    \
  CONSTANT(scattered_store, 1.68, "cycles", "fitted", "an element that is written by itself")                \
  CONSTANT(aliased_store, 4, "cycles", "fitted", "the same where rows share sets of L1")                     \
  CONSTANT(written_vector, 2, "cycles", "counted", "a vector of results: loaded, stored")                    \
  CONSTANT(copied_vector, 6, "cycles", "fitted", "a vector of an operand that is copied")                    \
  CONSTANT(copied_element, 1.5, "cycles", "chosen", "an element of such a copy that is written by itself")   \
  CONSTANT(padded_vector, 3, "cycles", "fitted", "a vector of a padded tensor")                              \
  CONSTANT(padded_vector_tile, 5, "cycles", "chosen", "the same of a padded tile")                           \
  CONSTANT(copy_tile, 15, "cycles", "fitted", "loads of a window that wait for the stores of its copy")      \
  CONSTANT(transform_load, 0.6, "cycles", "fitted", "a vector that a Winograd transform loads")              \
  CONSTANT(transform_store, 1.2, "cycles", "fitted", "a vector that it stores")                              \
  /* Tails */                                                                                                \
  CONSTANT(tail_vector, 1.4, "times", "fitted", "a loop whose vectors are decided lane by lane")             \
  CONSTANT(tail_scalar, 1.15, "times", "fitted", "a loop that decides in each iteration")                    \
  CONSTANT(tail_masked, 1.1, "times", "fitted", "either of these under masks, at most")                      \
  CONSTANT(tail_masked_window, 4, "times", "chosen", "the same of sliding windows")                          \
  CONSTANT(tail_spatial, 1.4, "times", "chosen", "an elementwise loop that decides for each vector")         \
  /* Caches */                                                                                               \
  CONSTANT(usable, 0.75, "share", "fitted", "of a cache before it loses what is needed again")               \
  CONSTANT(usable_shared, 0.4, "share", "fitted",                                                            \
           "the same of a core's part of L3 for operands of products")                                       \
  CONSTANT(usable_once, 1, "share", "chosen", "of L2 and L3 for what is moved once")                         \
  CONSTANT(usable_planes, 0.6, "share", "fitted", "of L2 for the planes between stages of Winograd")         \
  CONSTANT(cold_weights, 1.6, "times", "seen", "weights that come from memory, over the rate of the device") \
  CONSTANT(scattered, 2.5, "times", "fitted", "lines that no prefetcher follows, over a stream")             \
  CONSTANT(near_lines, 0.6, "times", "fitted", "lines that lie apart within pages, over a stream")           \
  CONSTANT(crowded_ways, 1.5, "times", "fitted", "the ways of a cache that rows need, over those they fill") \
  CONSTANT(conflict, 0.8, "times", "fitted", "lines that share too few sets, which products wait for")       \
  CONSTANT(tlb_hit, 0.3, "times", "fitted", "lines pages apart that the TLB holds, which products wait for") \
  CONSTANT(prefetched_streams, 12, "streams", "fitted", "that prefetchers follow")                           \
  CONSTANT(not_prefetched, 3, "times", "fitted",                                                             \
           "what more streams than these bring, which products wait for")                                    \
  CONSTANT(stream_bytes, 64, "bytes", "fitted", "at a stretch, that prefetchers follow")                     \
  CONSTANT(row_start, 1.5, "cycles", "fitted",                                                               \
           "a piece of a row in another page than the one before, from L2")                                  \
  CONSTANT(row_start_beyond, 40, "cycles", "fitted", "the same from L3 or memory")                           \
  /* Rows */                                                                                                 \
  CONSTANT(row_sum, 60, "cycles", "counted", "adding up the lanes of a row, twice")                          \
  CONSTANT(written_row, 4, "cycles", "counted", "a row of a register tile that is written")                  \
  CONSTANT(row_pass, 3, "cycles", "counted", "a vector of the passes of a softmax, beside its arithmetic")   \
  CONSTANT(halving, 3, "cycles", "counted", "each halving of the lanes of a sum")                            \
  /* Windows */                                                                                              \
  CONSTANT(window_tile, 8, "cycles", "counted", "of a tile: loop, addresses, conditions of the border")      \
  CONSTANT(window_crossing, 1.2, "times", "fitted", "loads of which half lie across two lines")              \
  CONSTANT(window_strided, 0.7, "times", "fitted", "vectors loaded for strided ones, over their stride")     \
  CONSTANT(window_border_row, 0.5, "cycles", "counted",                                                      \
           "a load whose row is guarded by choosing an address")                                             \
  CONSTANT(window_border, 2, "cycles", "fitted", "a load that is guarded by a mask")                         \
  CONSTANT(window_registers, 4, "registers", "counted", "beside the operands that stay")                     \
  CONSTANT(window_epilogue, 0.5, "cycles", "counted", "an operation of what follows the window")             \
  CONSTANT(window_measured, 1.8, "times", "fitted", "measured over what is added up")                        \
  CONSTANT(window_instructions, 12, "instructions", "fitted",                                                \
           "of a point of the window, in the reorder buffer")                                                \
  /* Elementwise */                                                                                          \
  CONSTANT(vector_step, 0.5, "cycles", "counted",                                                            \
           "of a loop over vectors, shared by those that are unrolled")                                      \
  CONSTANT(strided_lines, 4, "times", "fitted", "bytes that strided reads move, over those that they use")   \
  CONSTANT(strided_lines_tiled, 1.5, "times", "fitted", "the same where tiles use the neighbours soon")      \
  CONSTANT(plain_point, 5, "cycles", "counted", "of a loop that is not scheduled")                           \
  /* Matrix units, emulated instructions */                                                                  \
  CONSTANT(tile_product, 16, "cycles", "counted", "of a product of two tiles of a matrix unit")              \
  CONSTANT(tile_load, 8, "cycles", "counted", "of a tile's load or store: 16 rows, two a cycle")             \
  CONSTANT(emulated_dot4, 5, "instructions", "counted", "in place of one that adds products of bytes")       \
  CONSTANT(emulated_dot4_narrow, 2, "instructions", "counted",                                               \
           "the same where sums of two products fit in i16: two multiplications; there are more units for "  \
           "the sum")                                                                                        \
  CONSTANT(emulated_dot2_i16, 1.34, "instructions", "counted",                                               \
           "in place of one that adds products of i16: a sum, for which there are more units, follows")      \
  CONSTANT(emulated_dot2, 3, "instructions", "counted", "in place of one that adds products of bf16 elements")

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
