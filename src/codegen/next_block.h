// Buffers that are read block by block: where the next block is to be fetched while this one is used
// (docs/decisions/003-prefetches-and-pages.md). Arithmetic only: backends emit what it says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tensorsmith::codegen {

// A loop around a read.
struct ReadLoop {
  int64_t extent = 1;
  int64_t coefficient = 0;  // elements from one iteration to the next
};

// What a step of the innermost loop reads: `count` pieces of `span` elements, `stride` elements from begin to begin.
struct StepReads {
  int64_t span = 1;
  int64_t count = 1, stride = 0;
};

struct NextBlock {
  int depth = 0;         // of the loop that goes from block to block
  int64_t elements = 0;  // fetched in each step of the innermost loop
  int64_t block = 0;     // elements of a block
  std::vector<int64_t>
      offsets;  // elements that each iteration of the loops inside `depth` goes on, outermost first
};

// loops: around the read, the outermost first. Nothing unless the blocks follow each other in memory and the innermost loops read each
// without gaps. Loops around these read it again, or a step reads several pieces: what is read once and in the order of memory is a
// stream, which processors fetch by themselves. A block may be longer than what is read of it, by an eighth at most: its end is read by
// a loop of its own, or nothing but padding.
// In an iteration of the loops, elements [begin of the read's block + block + sum of offset * iteration, + elements)
// are to be fetched: all of the next block has been, once, when the last step of this one ends.
std::optional<NextBlock> next_block(std::span<const ReadLoop> loops, const StepReads& step);

// For reads of which the innermost loop steps over `stride` elements or more, too far for a processor to fetch ahead: how many elements
// lie between a read and that of the next tile, the loop around it with the next smaller step. Nothing if there is none.
std::optional<int64_t> next_tile(std::span<const ReadLoop> loops, int64_t stride);

}  // namespace tensorsmith::codegen
