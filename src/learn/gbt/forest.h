// Regression trees in a layout that evaluates many rows quickly.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "learn/gbt/shallow_trees.h"

namespace tensorsmith::learn {

// One tree as learned: node 0 is the root; left < 0 marks a leaf. A row goes to the left child if
// row[feature] < threshold.
struct Tree {
  std::vector<int> left, right, feature;
  std::vector<float> threshold;  // for inner nodes
  std::vector<float> value;      // for leaves
  size_t size() const { return left.size(); }
};

// Nodes are renumbered breadth-first with siblings adjacent, so that a node takes 8 bytes and a
// step is one comparison and one addition: next = left + (row[feature] >= threshold). A leaf is its
// own left child with a NaN threshold, for which the comparison is always false. So every row takes
// exactly `depth` steps without a branch, and the steps of several rows overlap in the pipeline. If
// all trees are shallow and the processor has AVX-512, ShallowTrees evaluates them and gives the
// same sums.
class Forest {
 public:
  // kInvalidArgument for nodes that do not form a tree, a feature outside [0, width), or over
  // 65,536 nodes.
  static Result<Forest> create(std::span<const Tree> trees, size_t width);

  size_t width() const { return width_; }
  size_t tree_count() const { return roots_.size(); }
  // Sets out[r] to the sum, over the trees in order, of the value for row r. rows: row-major,
  // out.size() * width values, all finite.
  void predict(std::span<const float> rows, std::span<float> out) const;

  // The nodes of all trees, one tree after the other. number: threshold of an inner node or value
  // of a leaf. left: index of the left child within the tree; the right child follows it. A leaf
  // has left 0.
  struct Arrays {
    std::vector<int32_t> sizes;  // number of nodes of each tree
    std::vector<float> number;   // by node, like the other arrays
    std::vector<uint16_t> feature, left;
  };
  Arrays to_arrays() const;
  // Makes the same checks as create(), with kCorrupt as the error.
  static Result<Forest> from_arrays(const Arrays& arrays, size_t width);
  // Appends the trees of `other`, which must have the same width.
  void append(const Forest& other);

 private:
  struct Node {
    float threshold;
    uint16_t feature;
    uint16_t left;  // index relative to the tree's first node
  };
  // Creates shallow_ if all trees are shallow and the processor supports it.
  void add_shallow_trees();
  void complete(uint32_t first, uint32_t at, uint32_t node, uint32_t level,
                ShallowTrees::CompleteTree& out) const;

  size_t width_ = 0;
  std::vector<Node> nodes_;
  std::vector<float> values_;  // by node; 0 for inner nodes
  struct Root {
    uint32_t first;  // index in nodes_
    uint32_t depth;
  };
  std::vector<Root> roots_;
  std::shared_ptr<const ShallowTrees> shallow_;  // null if not used
};

}  // namespace tensorsmith::learn
