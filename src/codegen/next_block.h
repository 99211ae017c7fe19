// Prefetch for buffers that are read block by block: determines where the next block is fetched
// while the current one is used (docs/decisions/003-prefetches-and-pages.md). This file only
// computes; the backends emit the prefetches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tensorsmith::codegen {

// One of the loops around a read.
struct ReadLoop {
  int64_t extent = 1;
  int64_t coefficient = 0;  // elements between the reads of successive iterations
};

// The reads of one step of the innermost loop: `count` pieces of `span` elements whose beginnings
// are `stride` elements apart.
struct StepReads {
  int64_t span = 1;
  int64_t count = 1, stride = 0;
};

struct NextBlock {
  int depth = 0;         // index of the loop that goes from block to block
  int64_t elements = 0;  // elements fetched in each step of the innermost loop
  int64_t block = 0;     // distance between blocks in elements
  std::vector<int64_t>
      offsets;  // elements that each iteration of the loops inside `depth` goes on, outermost first
};

// Finds blocks to prefetch for a read inside `loops` (the outermost first). Returns nothing unless
// the blocks follow each other in memory and the loops inside read each block without gaps. A block
// must also be read more than once, or in several pieces per step: data that is read once and in
// memory order is a stream, which the processor prefetches by itself. The distance between blocks
// may exceed the elements read of a block by an eighth at most: another loop reads the rest, or it
// is padding.
//
// Each iteration of the loops has to fetch the elements
// [begin of the read's block + block + sum of offset * iteration, + elements).
// When the last step of a block ends, the whole next block has been fetched exactly once.
std::optional<NextBlock> next_block(std::span<const ReadLoop> loops, const StepReads& step);

// For a read that the innermost loop advances by `stride` elements or more, which is too far for
// the hardware prefetcher: returns the distance in elements to the read of the next tile. That is
// the coefficient of the closest loop outside that advances the read by less. Returns nothing if
// there is no such loop.
std::optional<int64_t> next_tile(std::span<const ReadLoop> loops, int64_t stride);

}  // namespace tensorsmith::codegen
