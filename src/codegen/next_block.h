// Buffers that are read block by block: where the next block is to be fetched while this one is used
// (docs/decisions/034-weights-are-fetched-ahead.md). Arithmetic only: backends emit what it says.
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

struct NextBlock {
  int depth = 0;         // of the loop that goes from block to block
  int64_t elements = 0;  // fetched in each step of the innermost loop
  int64_t block = 0;     // elements of a block
  std::vector<int64_t>
      offsets;  // elements that each iteration of the loops inside `depth` goes on, outermost first
};

// loops: around a read of `span` elements without gaps, the outermost first. Nothing unless the blocks follow each other in memory,
// each is read as one piece, from its begin, by the innermost loops, and loops around these read it again.
// In an iteration of the loops, elements [begin of the read's block + block + sum of offset * iteration, + elements)
// are to be fetched: all of the next block has been, once, when the last step of this one ends.
std::optional<NextBlock> next_block(std::span<const ReadLoop> loops, int64_t span);

}  // namespace tensorsmith::codegen
