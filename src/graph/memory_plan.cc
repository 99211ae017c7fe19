#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>
#include <vector>

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

// Blocks indexed by the calls during which they are live: a segment tree, so that a network of a
// hundred thousand calls does not compare each block with all others.
class LiveBlocks {
 public:
  explicit LiveBlocks(size_t calls) : size_(std::bit_ceil(std::max<size_t>(calls, 1))), nodes_(2 * size_) {}
  void add(size_t block, size_t first, size_t last) { add(1, 0, size_, block, first, last); }
  // Returns the blocks that are live at some call from `first` to `last`, each once.
  std::vector<size_t> overlapping(size_t first, size_t last) {
    std::vector<size_t> found;
    ++query_;
    collect(1, 0, size_, first, last, found);
    return found;
  }

 private:
  struct Node {
    std::vector<size_t> blocks;  // blocks that are live during all of the node's calls
    bool below = false;          // some node below it has a block
  };
  void add(size_t node, size_t begin, size_t end, size_t block, size_t first, size_t last) {
    if (first <= begin && end <= last + 1) return nodes_[node].blocks.push_back(block);
    nodes_[node].below = true;
    const size_t middle = begin + (end - begin) / 2;
    if (first < middle) add(2 * node, begin, middle, block, first, last);
    if (last >= middle) add(2 * node + 1, middle, end, block, first, last);
  }
  void collect(size_t node, size_t begin, size_t end, size_t first, size_t last, std::vector<size_t>& found) {
    if (last < begin || first >= end) return;
    for (size_t block : nodes_[node].blocks) {
      if (seen_.size() <= block) seen_.resize(block + 1, 0);
      if (std::exchange(seen_[block], query_) != query_) found.push_back(block);
    }
    if (!nodes_[node].below) return;
    const size_t middle = begin + (end - begin) / 2;
    collect(2 * node, begin, middle, first, last, found);
    collect(2 * node + 1, middle, end, first, last, found);
  }

  size_t size_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> seen_;  // by block: the last query that found it
  uint32_t query_ = 0;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const Partition& partition, int64_t alignment) {
  MemoryPlan plan;
  plan.offset.assign(graph.values.size(), -1);
  auto storage = [&](ValueId id) { return partition.storage_of[static_cast<size_t>(id)]; };
  std::unordered_set<ValueId> elsewhere;  // values in memory that the user owns
  for (ValueId id : graph.inputs) elsewhere.insert(storage(id));
  for (ValueId id : graph.outputs) elsewhere.insert(storage(id));

  std::vector<int> block_of(graph.values.size(), -1);
  std::vector<Block> blocks;
  for (size_t c = 0; c < partition.calls.size(); ++c) {
    for (ValueId id : partition.calls[c].outputs) {
      const ValueId root = storage(id);
      if (elsewhere.count(root)) continue;
      if (const int block = block_of[static_cast<size_t>(root)]; block >= 0) {  // another part of the block
        blocks[static_cast<size_t>(block)].last = c;
        continue;
      }
      const int64_t bytes = graph.values[static_cast<size_t>(root)].bytes();
      block_of[static_cast<size_t>(root)] = static_cast<int>(blocks.size());
      blocks.push_back({root, std::max<int64_t>((bytes + alignment - 1) / alignment, 1) * alignment, c, c});
    }
    for (ValueId id : partition.calls[c].inputs) {
      const int block = block_of[static_cast<size_t>(storage(id))];
      if (block >= 0) blocks[static_cast<size_t>(block)].last = c;
    }
  }

  std::vector<size_t> order(blocks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  LiveBlocks live(partition.calls.size());
  std::vector<size_t> placed;  // sorted by offset
  const auto lower = [&](size_t a, size_t b) { return blocks[a].offset < blocks[b].offset; };
  for (size_t i : order) {
    Block& block = blocks[i];
    std::vector<size_t> others = live.overlapping(block.first, block.last);
    // If most blocks are live at once, scanning all of them takes less time than sorting the
    // overlapping ones.
    if (others.size() < placed.size() / 16) {
      std::sort(others.begin(), others.end(), lower);
    } else {
      others.clear();
      for (size_t j : placed) {
        if (blocks[j].last >= block.first && block.last >= blocks[j].first) others.push_back(j);
      }
    }
    int64_t candidate = 0;
    for (size_t j : others) {
      const Block& other = blocks[j];
      if (candidate + block.bytes <= other.offset) break;
      candidate = std::max(candidate, other.offset + other.bytes);
    }
    block.offset = candidate;
    plan.arena_bytes = std::max(plan.arena_bytes, candidate + block.bytes);
    plan.offset[static_cast<size_t>(block.value)] = candidate;
    live.add(i, block.first, block.last);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i, lower), i);
  }
  // Views have offsets inside their storage.
  for (size_t v = 0; v < plan.offset.size(); ++v) {
    const ValueId root = partition.storage_of[v];
    if (static_cast<size_t>(root) == v || plan.offset[static_cast<size_t>(root)] < 0) continue;
    plan.offset[v] = plan.offset[static_cast<size_t>(root)] + partition.storage_offset[v];
  }
  return plan;
}

}  // namespace tensorsmith::graph
