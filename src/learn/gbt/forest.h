// Regression trees laid out for fast evaluation of many rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "learn/gbt/shallow_trees.h"

namespace tensorsmith::learn {

// One tree as learned: node 0 is the root; left < 0 marks a leaf. A row goes left where row[feature] <
// threshold.
struct Tree {
  std::vector<int> left, right, feature;
  std::vector<float> threshold;  // of inner nodes
  std::vector<float> value;      // of leaves
  size_t size() const { return left.size(); }
};

// Nodes are renumbered breadth-first with siblings adjacent, so that a node is 8 bytes and a step is one
// comparison and one addition: next = left + (row[feature] >= threshold). A leaf is its own left child with
// threshold NaN, which no value reaches: every row takes `depth` steps without a branch, and the steps of
// several rows overlap in the pipeline. Where all trees are shallow and the processor has AVX-512, ShallowTrees
// evaluates them, to the same sums.
class Forest {
 public:
  // kInvalidArgument for a tree that is no tree, has a feature outside [0, width), or over 65,536 nodes.
  static Result<Forest> create(std::span<const Tree> trees, int width);

  int width() const { return width_; }
  size_t tree_count() const { return roots_.size(); }
  // out[r] = sum over the trees, in order, of the value of row r. rows: row-major, out.size() * width values,
  // all finite.
  void predict(std::span<const float> rows, std::span<float> out) const;

  // The nodes of all trees, one tree after the other: number is the threshold of an inner node or the value
  // of a leaf; left is the left child's place in the tree, the right child follows it; a leaf has left 0.
  struct Arrays {
    std::vector<int32_t> sizes;  // by tree: its nodes
    std::vector<float> number;   // by node, as the others
    std::vector<uint16_t> feature, left;
  };
  Arrays to_arrays() const;
  // Checks everything create() checks (kCorrupt).
  static Result<Forest> from_arrays(const Arrays& arrays, int width);
  // This forest and then the other's trees, of the same width.
  void append(const Forest& other);

 private:
  struct Node {
    float threshold;
    uint16_t feature;
    uint16_t left;  // relative to the tree's first node
  };
  // Of the trees, if they are shallow and this processor can.
  void add_shallow_trees();
  void complete(uint32_t first, uint32_t at, uint32_t node, uint32_t level,
                ShallowTrees::CompleteTree& out) const;

  int width_ = 0;
  std::vector<Node> nodes_;
  std::vector<float> values_;  // by node; 0 for inner nodes
  struct Root {
    uint32_t first;  // index in nodes_
    uint32_t depth;
  };
  std::vector<Root> roots_;
  std::shared_ptr<const ShallowTrees> shallow_;  // null: none
};

}  // namespace tensorsmith::learn
