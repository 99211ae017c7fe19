#include <algorithm>
#include <unordered_set>

#include "graph/tasks.h"

namespace tensorsmith::graph {
namespace {

constexpr int64_t kAlignment = 64;

struct Block {
  ValueId value = kNoValue;
  int64_t bytes = 0;
  size_t first = 0;  // call that writes it
  size_t last = 0;   // last call that reads it
  int64_t offset = -1;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const Partition& partition) {
  MemoryPlan plan;
  plan.offset.assign(graph.values.size(), -1);
  auto storage = [&](ValueId id) { return partition.storage_of[static_cast<size_t>(id)]; };
  std::unordered_set<ValueId> elsewhere;  // in memory that the user owns
  for (ValueId id : graph.inputs) elsewhere.insert(storage(id));
  for (ValueId id : graph.outputs) elsewhere.insert(storage(id));

  std::vector<int> block_of(graph.values.size(), -1);
  std::vector<Block> blocks;
  for (size_t c = 0; c < partition.calls.size(); ++c) {
    for (ValueId id : partition.calls[c].outputs) {
      const ValueId root = storage(id);
      if (elsewhere.count(root)) continue;
      if (const int block = block_of[static_cast<size_t>(root)]; block >= 0) {  // another part of it
        blocks[static_cast<size_t>(block)].last = c;
        continue;
      }
      const Value& value = graph.values[static_cast<size_t>(root)];
      int64_t bytes = ir::bytes_of(value.dtype);
      for (int64_t extent : value.shape) bytes *= extent;
      block_of[static_cast<size_t>(root)] = static_cast<int>(blocks.size());
      blocks.push_back(
          {root, std::max<int64_t>((bytes + kAlignment - 1) / kAlignment, 1) * kAlignment, c, c});
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
  std::vector<size_t> placed;  // by offset
  for (size_t i : order) {
    Block& block = blocks[i];
    int64_t candidate = 0;
    for (size_t j : placed) {
      const Block& other = blocks[j];
      if (other.last < block.first || block.last < other.first) continue;
      if (candidate + block.bytes <= other.offset) break;
      candidate = std::max(candidate, other.offset + other.bytes);
    }
    block.offset = candidate;
    plan.arena_bytes = std::max(plan.arena_bytes, candidate + block.bytes);
    plan.offset[static_cast<size_t>(block.value)] = candidate;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return blocks[a].offset < blocks[b].offset; }),
                  i);
  }
  // Views lie in their storage.
  for (size_t v = 0; v < plan.offset.size(); ++v) {
    const ValueId root = partition.storage_of[v];
    if (static_cast<size_t>(root) == v || plan.offset[static_cast<size_t>(root)] < 0) continue;
    plan.offset[v] = plan.offset[static_cast<size_t>(root)] + partition.storage_offset[v];
  }
  return plan;
}

}  // namespace tensorsmith::graph
