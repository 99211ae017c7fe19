// The loops of a program of TVM's TIR as a tree, with a block (a statement) at each end: what the
// instructions of MetaSchedule name and change. Extents are unknown to it.
#pragma once

#include <span>
#include <vector>

#include "base/id.h"
#include "base/result.h"

namespace tensorsmith::record {

struct BlockTreeNode;
using BlockTreeId = Id<BlockTreeNode>;

struct BlockTreeNode {
  enum class Kind : uint8_t { kRoot, kLoop, kBlock, kGone };
  Kind kind = Kind::kLoop;
  BlockTreeId parent;
  std::vector<BlockTreeId> children;  // in the order in which they run
};

// Nodes that an instruction replaces keep their ids, as kGone. Errors have no place and leave the
// tree as it was.
class BlockTree {
 public:
  BlockTree();

  BlockTreeId root() const { return BlockTreeId(0); }
  const BlockTreeNode& node(BlockTreeId id) const { return nodes_[id]; }
  // Returns the blocks in the order in which they run.
  std::vector<BlockTreeId> blocks() const;
  // Returns all loops around the block, outer to inner.
  std::vector<BlockTreeId> loops_of(BlockTreeId block) const;
  // Returns whether `inner` is `outer` or inside it.
  bool is_inside(BlockTreeId inner, BlockTreeId outer) const;

  BlockTreeId add_block();  // a block that is nowhere yet
  // Puts a block that is nowhere inside `count` new loops, which become the child of `parent` at the
  // position. Returns the loops, outer to inner.
  std::vector<BlockTreeId> place(BlockTreeId block, BlockTreeId parent, size_t position, size_t count);
  // Takes the block out, with the loops that contain nothing else.
  void take_out(BlockTreeId block);
  // Returns the position among the root's children of the one that contains the node.
  size_t position_at_root(BlockTreeId id) const;

  std::vector<BlockTreeId> split(BlockTreeId loop, size_t parts);
  // The loops must be directly inside each other.
  Result<BlockTreeId> fuse(std::span<const BlockTreeId> loops);
  // Permutes the loops among their places, outer to inner as given. They must be around the same
  // blocks.
  Status reorder(std::span<const BlockTreeId> loops);

 private:
  BlockTreeId add(BlockTreeNode::Kind kind);
  void replace_child(BlockTreeId parent, BlockTreeId old_child, BlockTreeId new_child);
  void adopt_children(BlockTreeId from, BlockTreeId to);
  IdVector<BlockTreeId, BlockTreeNode> nodes_;
};

}  // namespace tensorsmith::record
