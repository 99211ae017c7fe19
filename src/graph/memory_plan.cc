#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/floor_div.h"
#include "graph/tasks.h"

namespace tensorsmith::graph {
namespace {

struct Block {
  ValueId value = kNoValue;
  int64_t bytes = 0;
  size_t first = 0;  // call that writes it
  size_t last = 0;   // last call that reads it
  int64_t offset = -1;
};
using BlockId = Id<Block>;

// Blocks indexed by the calls during which they are live: a segment tree, so that a network of a
// hundred thousand calls does not compare each block with all others.
class LiveBlocks {
 public:
  explicit LiveBlocks(size_t calls) : size_(std::bit_ceil(std::max<size_t>(calls, 1))), nodes_(2 * size_) {}
  void add(BlockId block, size_t first, size_t last) { add(1, 0, size_, block, first, last); }
  // Returns the blocks that are live at some call from `first` to `last`, each once.
  std::vector<BlockId> overlapping(size_t first, size_t last) {
    std::vector<BlockId> found;
    ++query_;
    collect(1, 0, size_, first, last, found);
    return found;
  }

 private:
  struct Node {
    std::vector<BlockId> blocks;  // blocks that are live during all of the node's calls
    bool below = false;           // some node below it has a block
  };
  void add(size_t node, size_t begin, size_t end, BlockId block, size_t first, size_t last) {
    if (first <= begin && end <= last + 1) return nodes_[node].blocks.push_back(block);
    nodes_[node].below = true;
    const size_t middle = begin + (end - begin) / 2;
    if (first < middle) add(2 * node, begin, middle, block, first, last);
    if (last >= middle) add(2 * node + 1, middle, end, block, first, last);
  }
  void collect(size_t node, size_t begin, size_t end, size_t first, size_t last,
               std::vector<BlockId>& found) {
    if (last < begin || first >= end) return;
    for (const BlockId block : nodes_[node].blocks) {
      if (!seen_.has(block)) seen_.resize(block.place() + 1, 0);
      if (std::exchange(seen_[block], query_) != query_) found.push_back(block);
    }
    if (!nodes_[node].below) return;
    const size_t middle = begin + (end - begin) / 2;
    collect(2 * node, begin, middle, first, last, found);
    collect(2 * node + 1, middle, end, first, last, found);
  }

  size_t size_;
  std::vector<Node> nodes_;
  IdVector<BlockId, uint32_t> seen_;  // the last query that found it
  uint32_t query_ = 0;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const Partition& partition, int64_t alignment) {
  MemoryPlan plan;
  plan.offset.assign(graph.values.size(), -1);
  auto storage = [&](ValueId id) { return partition.storage_of[id]; };
  std::unordered_set<ValueId> elsewhere;  // values in memory that the user owns
  for (ValueId id : graph.inputs) elsewhere.insert(storage(id));
  for (ValueId id : graph.outputs) elsewhere.insert(storage(id));

  IdVector<ValueId, BlockId> block_of(graph.values.size());
  IdVector<BlockId, Block> blocks;
  for (size_t c = 0; c < partition.calls.size(); ++c) {
    for (ValueId id : partition.calls[c].outputs) {
      const ValueId root = storage(id);
      if (elsewhere.count(root)) continue;
      if (const BlockId block = block_of[root]; block.valid()) {  // another part of the block
        blocks[block].last = c;
        continue;
      }
      const int64_t bytes = std::max<int64_t>(graph.values[root].bytes(), 1);
      block_of[root] = blocks.push_back({root, round_up(bytes, alignment), c, c});
    }
    for (ValueId id : partition.calls[c].inputs) {
      const BlockId block = block_of[storage(id)];
      if (block.valid()) blocks[block].last = c;
    }
  }

  // Whatever a region and calls outside of it have in common is there during all of its turns. (A state is, since it is
  // written before the first turn.)
  for (const PlacedRegion& region : partition.regions) {
    const auto keep = [&](ValueId id, bool all) {
      const BlockId b = id == kNoValue ? BlockId() : block_of[storage(id)];
      if (!b.valid()) return;
      Block& block = blocks[b];
      if (!all && block.first >= region.begin && block.last < region.end) return;
      block.first = std::min(block.first, region.begin);
      block.last = std::max(block.last, region.end - 1);
    };
    for (size_t c = region.begin; c < region.end; ++c) {
      for (const ValueId id : partition.calls[c].inputs) keep(id, false);
      for (const ValueId id : partition.calls[c].outputs) keep(id, false);
    }
    keep(region.condition, true);
    keep(region.count, true);
  }

  std::vector<BlockId> order(blocks.ids().begin(), blocks.ids().end());
  std::ranges::stable_sort(order, std::greater(), [&](BlockId b) { return blocks[b].bytes; });
  LiveBlocks live(partition.calls.size());
  std::vector<BlockId> placed;  // sorted by offset
  const auto offset = [&](BlockId b) { return blocks[b].offset; };
  for (const BlockId i : order) {
    Block& block = blocks[i];
    std::vector<BlockId> others = live.overlapping(block.first, block.last);
    // If most blocks are live at once, scanning all of them takes less time than sorting the
    // overlapping ones.
    if (others.size() < placed.size() / 16) {
      std::ranges::sort(others, {}, offset);
    } else {
      others.clear();
      for (const BlockId j : placed) {
        if (blocks[j].last >= block.first && block.last >= blocks[j].first) others.push_back(j);
      }
    }
    int64_t candidate = 0;
    for (const BlockId j : others) {
      const Block& other = blocks[j];
      if (candidate + block.bytes <= other.offset) break;
      candidate = std::max(candidate, other.offset + other.bytes);
    }
    block.offset = candidate;
    plan.arena_bytes = std::max(plan.arena_bytes, candidate + block.bytes);
    plan.offset[block.value] = candidate;
    live.add(i, block.first, block.last);
    placed.insert(std::ranges::upper_bound(placed, block.offset, {}, offset), i);
  }
  // Views have offsets inside their storage.
  for (const ValueId v : plan.offset.ids()) {
    const ValueId root = partition.storage_of[v];
    if (root == v || plan.offset[root] < 0) continue;
    plan.offset[v] = plan.offset[root] + partition.storage_offset[v];
  }
  return plan;
}

}  // namespace tensorsmith::graph
