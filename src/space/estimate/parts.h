// The quantities of an estimate, from which a cost model can learn where the estimate errs.
#pragma once

// TIME(name, meaning): cycles of all threads together, added up over the plans of a candidate.
// FACT(name, unit, meaning): taken from the plan that the estimate considers slowest.
#define TENSORSMITH_ESTIMATE_PARTS(TIME, FACT)                                                    \
  TIME(arithmetic, "register tiles, with the loops around them and what their tails cost")        \
  TIME(from_l2, "data from L2 while products are computed")                                       \
  TIME(from_beyond, "data from L3 and memory while products are computed")                        \
  TIME(waited, "data that products wait for")                                                     \
  TIME(written, "results that are written, with the operations on them")                          \
  TIME(moved, "operands that are copied, padded or transformed before the loops")                 \
  FACT(plan, "number", "kind of plan, by estimate/plan_number.h")                                 \
  FACT(products, "vectors", "products of a step of the register tile")                            \
  FACT(loads, "vectors", "loads of a step, with broadcasts")                                      \
  FACT(broadcasts, "vectors", "loads of a step that broadcast an element")                        \
  FACT(shuffles, "vectors", "shuffles of a step that assemble strided operands")                  \
  FACT(accumulators, "vectors", "sums that stay in registers")                                    \
  FACT(free_registers, "registers", "registers that sums and operands leave; negative: missing")  \
  FACT(lanes, "elements", "lanes of a vector")                                                    \
  FACT(lane_share, "share", "share of the processor's vector that the lanes fill")                \
  FACT(rows, "log2", "points of a tile off the axis of its vectors")                              \
  FACT(source_row, "log2 elements", "contiguous elements of a strided operand that a tile reads") \
  FACT(chain, "log2 steps", "steps of a sum before the next one begins")                          \
  FACT(instructions, "log2", "code size of all steps that are unrolled")                          \
  FACT(unrolled, "log2", "points that are unrolled")                                              \
  FACT(efficiency, "share", "products at the processor's rate, over the cycles of a step")        \
  FACT(tail, "log", "factor by which tiles that do not divide the extents slow down")             \
  FACT(peeled, "0 or 1", "tails have loops of their own")                                         \
  FACT(tiles, "log2", "register tiles of the whole kernel")                                       \
  FACT(wasted, "share", "share of the register tiles' points that lie outside of the tensor")     \
  FACT(packed, "0 or 1", "constant operands are packed in the order of the loops")                \
  FACT(copied, "operands", "operands that are copied in the order of the loops")                  \
  FACT(buffered, "0 or 1", "results are kept in a temporary before they are written")             \
  FACT(scattered, "0 or 1", "results are written element by element")                             \
  FACT(outer_attached, "0 or 1", "the reduction is attached to the outer loops")                  \
  FACT(row, "log2 bytes", "contiguous bytes of a tile's result")                                  \
  FACT(tile_bytes, "log2", "operand data of a tile at the level where the reduction is attached") \
  FACT(bytes, "log2", "operands and results of the whole kernel")                                 \
  FACT(streams, "streams", "places from which a register tile broadcasts elements")               \
  FACT(iterations, "log2", "iterations of the parallel loop")                                     \
  FACT(speedup, "share", "speed-up by threads, over their number")                                \
  FACT(forks, "loops", "parallel loops that start all threads")                                   \
  FACT(epilogue, "operations", "operations on a result after the reduction")                      \
  FACT(reduced, "log2 steps", "steps of the whole reduction")

namespace tensorsmith::space {

struct EstimateParts {
  double seconds = 0;  // the estimate
#define TENSORSMITH_TIME(name, meaning) double name = 0;
#define TENSORSMITH_FACT(name, unit, meaning) double name = 0;
  TENSORSMITH_ESTIMATE_PARTS(TENSORSMITH_TIME, TENSORSMITH_FACT)
#undef TENSORSMITH_TIME
#undef TENSORSMITH_FACT
};

}  // namespace tensorsmith::space
