#include "record/metaschedule/block_tree.h"

#include <algorithm>
#include <utility>

namespace tensorsmith::record {

namespace {

Error bad_loops(std::string reason) { return Error{ErrorCode::kIllegal, "", std::move(reason)}; }

}  // namespace

BlockTree::BlockTree() { add(BlockTreeNode::Kind::kRoot); }

BlockTreeId BlockTree::add(BlockTreeNode::Kind kind) { return nodes_.push_back({kind, {}, {}}); }

BlockTreeId BlockTree::add_block() { return add(BlockTreeNode::Kind::kBlock); }

std::vector<BlockTreeId> BlockTree::blocks() const {
  std::vector<BlockTreeId> out;
  std::vector<BlockTreeId> open = {root()};  // a trace can nest loops deeper than the stack is
  while (!open.empty()) {
    const BlockTreeId id = open.back();
    open.pop_back();
    const BlockTreeNode& at = nodes_[id];
    if (at.kind == BlockTreeNode::Kind::kBlock) out.push_back(id);
    open.insert(open.end(), at.children.rbegin(), at.children.rend());
  }
  return out;
}

std::vector<BlockTreeId> BlockTree::loops_of(BlockTreeId block) const {
  std::vector<BlockTreeId> out;
  for (BlockTreeId at = nodes_[block].parent; at.valid() && at != root(); at = nodes_[at].parent)
    out.push_back(at);
  std::reverse(out.begin(), out.end());
  return out;
}

bool BlockTree::is_inside(BlockTreeId inner, BlockTreeId outer) const {
  BlockTreeId at = inner;
  while (at.valid() && at != outer) at = nodes_[at].parent;
  return at.valid();
}

std::vector<BlockTreeId> BlockTree::place(BlockTreeId block, BlockTreeId parent, size_t position,
                                          size_t count) {
  std::vector<BlockTreeId> loops;
  BlockTreeId around = parent;
  for (size_t i = 0; i <= count; ++i) {
    const BlockTreeId child = i < count ? add(BlockTreeNode::Kind::kLoop) : block;
    if (i < count) loops.push_back(child);
    auto& children = nodes_[around].children;
    children.insert(children.begin() + static_cast<std::ptrdiff_t>(i == 0 ? position : 0), child);
    nodes_[child].parent = around;
    around = child;
  }
  return loops;
}

void BlockTree::take_out(BlockTreeId block) {
  BlockTreeId gone = block;
  BlockTreeId parent = nodes_[block].parent;
  nodes_[block].parent = {};
  while (parent.valid()) {
    std::erase(nodes_[parent].children, gone);
    if (parent == root() || !nodes_[parent].children.empty()) break;
    gone = parent;
    parent = nodes_[gone].parent;
    nodes_[gone] = {BlockTreeNode::Kind::kGone, {}, {}};
  }
}

size_t BlockTree::position_at_root(BlockTreeId id) const {
  BlockTreeId at = id;
  while (nodes_[at].parent != root()) at = nodes_[at].parent;
  const auto& children = nodes_[root()].children;
  return std::find(children.begin(), children.end(), at) - children.begin();
}

void BlockTree::replace_child(BlockTreeId parent, BlockTreeId old_child, BlockTreeId new_child) {
  auto& children = nodes_[parent].children;
  std::replace(children.begin(), children.end(), old_child, new_child);
  nodes_[new_child].parent = parent;
}

void BlockTree::adopt_children(BlockTreeId from, BlockTreeId to) {
  nodes_[to].children = nodes_[from].children;
  for (const BlockTreeId child : nodes_[to].children) nodes_[child].parent = to;
}

std::vector<BlockTreeId> BlockTree::split(BlockTreeId loop, size_t parts) {
  std::vector<BlockTreeId> out;
  for (size_t i = 0; i < parts; ++i) out.push_back(add(BlockTreeNode::Kind::kLoop));
  replace_child(nodes_[loop].parent, loop, out.front());
  for (size_t i = 0; i + 1 < parts; ++i) {
    nodes_[out[i]].children = {out[i + 1]};
    nodes_[out[i + 1]].parent = out[i];
  }
  adopt_children(loop, out.back());
  nodes_[loop] = {BlockTreeNode::Kind::kGone, {}, {}};
  return out;
}

Result<BlockTreeId> BlockTree::fuse(std::span<const BlockTreeId> loops) {
  if (loops.empty()) return bad_loops("there are no loops to fuse");
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    if (nodes_[loops[i]].children != std::vector{loops[i + 1]})
      return bad_loops("the loops to fuse are not directly inside each other");
  }
  const BlockTreeId fused = add(BlockTreeNode::Kind::kLoop);
  replace_child(nodes_[loops.front()].parent, loops.front(), fused);
  adopt_children(loops.back(), fused);
  for (const BlockTreeId loop : loops) nodes_[loop] = {BlockTreeNode::Kind::kGone, {}, {}};
  return fused;
}

Status BlockTree::reorder(std::span<const BlockTreeId> loops) {
  if (loops.size() < 2) return {};
  const BlockTreeId* deepest = &loops.front();
  for (const BlockTreeId& loop : loops) {
    if (is_inside(loop, *deepest)) deepest = &loop;
  }
  // The chain from the deepest loop up to the outermost one, and which of its places are permuted.
  std::vector<BlockTreeId> chain;
  size_t found = 0;
  for (BlockTreeId at = *deepest; found < loops.size(); at = nodes_[at].parent) {
    if (!at.valid() || at == root()) return bad_loops("the loops to reorder are not around the same blocks");
    if (!chain.empty() && nodes_[at].children.size() != 1)
      return bad_loops("a loop to reorder contains several loops or blocks");
    chain.push_back(at);
    found += std::count(loops.begin(), loops.end(), at);
  }
  std::reverse(chain.begin(), chain.end());
  if (std::cmp_not_equal(std::count_if(chain.begin(), chain.end(),
                                       [&](BlockTreeId at) {
                                         return std::find(loops.begin(), loops.end(), at) != loops.end();
                                       }),
                         loops.size()))
    return bad_loops("a loop to reorder is named twice");
  const BlockTreeId parent = nodes_[chain.front()].parent;
  const std::vector<BlockTreeId> inside = nodes_[chain.back()].children;
  const BlockTreeId outermost = chain.front();
  size_t next = 0;
  for (BlockTreeId& at : chain) {
    if (std::find(loops.begin(), loops.end(), at) != loops.end()) at = loops[next++];
  }
  replace_child(parent, outermost, chain.front());
  for (size_t i = 0; i < chain.size(); ++i) {
    if (i > 0) nodes_[chain[i]].parent = chain[i - 1];
    nodes_[chain[i]].children = i + 1 < chain.size() ? std::vector{chain[i + 1]} : inside;
  }
  for (const BlockTreeId child : inside) nodes_[child].parent = chain.back();
  return {};
}

}  // namespace tensorsmith::record
