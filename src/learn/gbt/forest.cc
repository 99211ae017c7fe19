#include "learn/gbt/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensorsmith::learn {

namespace {

constexpr size_t kLanes = 8;   // rows that step through a tree together
constexpr size_t kBlock = 32;  // rows that stay in L1 while all trees are evaluated

Error bad_tree(const std::string& what) { return {ErrorCode::kInvalidArgument, "", "tree " + what}; }

}  // namespace

Result<Forest> Forest::create(std::span<const Tree> trees, size_t width) {
  if (width < 1 || width > 65535) return bad_tree("row width is not in [1, 65535]");
  Forest forest;
  forest.width_ = width;
  for (const Tree& tree : trees) {
    const size_t size = tree.size();
    if (size == 0) return bad_tree("without nodes");
    if (size > 65536) return bad_tree("with more than 65536 nodes");
    if (tree.right.size() != size || tree.feature.size() != size || tree.threshold.size() != size ||
        tree.value.size() != size)
      return bad_tree("with arrays of different lengths");
    const uint32_t first = forest.nodes_.size();
    // Renumbers the nodes breadth-first: order[i] is the old number of new node i. If a node had
    // two parents, order would grow beyond the size of the tree.
    std::vector<int> order = {0};
    std::vector<uint32_t> depth = {0};
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t old = order[i];
      if (tree.left[old] < 0) {
        if (!std::isfinite(tree.value[old])) return bad_tree("with a leaf value that is not finite");
        forest.nodes_.push_back({std::numeric_limits<float>::quiet_NaN(), 0, static_cast<uint16_t>(i)});
        forest.values_.push_back(tree.value[old]);
        continue;
      }
      for (const int child : {tree.left[old], tree.right[old]}) {
        if (child < 0 || child >= std::ssize(tree.left)) return bad_tree("with a child outside of it");
      }
      if (order.size() + 2 > size) return bad_tree("with a node that has two parents");
      if (tree.feature[old] < 0 || tree.feature[old] >= static_cast<int>(width))
        return bad_tree("with a feature outside the row");
      if (!std::isfinite(tree.threshold[old])) return bad_tree("with a threshold that is not finite");
      forest.nodes_.push_back({tree.threshold[old], static_cast<uint16_t>(tree.feature[old]),
                               static_cast<uint16_t>(order.size())});
      forest.values_.push_back(0);
      for (const int child : {tree.left[old], tree.right[old]}) {
        order.push_back(child);
        depth.push_back(depth[i] + 1);
      }
    }
    forest.roots_.push_back({first, depth.back()});
  }
  forest.add_shallow_trees();
  return forest;
}

void Forest::complete(uint32_t first, uint32_t at, uint32_t node, uint32_t level,
                      ShallowTrees::CompleteTree& out) const {
  if (level == ShallowTrees::kLevels) {
    out.value[node - ShallowTrees::kNodes] = values_[first + at];
    return;
  }
  // A leaf has a NaN threshold and is its own left child, so no row goes to its right.
  const Node& here = nodes_[first + at];
  out.threshold[node] = here.threshold;
  out.feature[node] = here.feature;
  const bool leaf = here.left == at;
  complete(first, here.left, 2 * node, level + 1, out);
  complete(first, leaf ? at : here.left + 1U, 2 * node + 1, level + 1, out);
}

void Forest::add_shallow_trees() {
  shallow_.reset();
  const bool all = std::all_of(roots_.begin(), roots_.end(),
                               [](const Root& root) { return root.depth <= ShallowTrees::kLevels; });
  if (!all || !ShallowTrees::runs_here()) return;
  auto shallow = std::make_shared<ShallowTrees>();
  for (const Root& root : roots_) {
    ShallowTrees::CompleteTree tree{};
    complete(root.first, 0, 1, 0, tree);
    shallow->add(tree);
  }
  shallow_ = std::move(shallow);
}

void Forest::predict(std::span<const float> rows, std::span<float> out) const {
  const size_t width = width_;
  TS_CHECK(rows.size() == out.size() * width, "Forest::predict: rows do not match the output");
  std::fill(out.begin(), out.end(), 0.0F);
  if (shallow_ != nullptr && out.size() >= ShallowTrees::kLeastRows)
    return shallow_->predict(rows, width, out);
  for (size_t block = 0; block < out.size(); block += kBlock) {
    const size_t block_end = std::min(out.size(), block + kBlock);
    for (const Root& root : roots_) {
      const Node* nodes = nodes_.data() + root.first;
      const float* values = values_.data() + root.first;
      size_t row = block;
      for (; row + kLanes <= block_end; row += kLanes) {
        const float* base = rows.data() + row * width;
        uint32_t at[kLanes] = {};
        for (uint32_t step = 0; step < root.depth; ++step) {
#pragma GCC unroll 8
          for (size_t lane = 0; lane < kLanes; ++lane) {
            const Node node = nodes[at[lane]];
            at[lane] = node.left + (base[lane * width + node.feature] >= node.threshold);
          }
        }
        for (size_t lane = 0; lane < kLanes; ++lane) out[row + lane] += values[at[lane]];
      }
      for (; row < block_end; ++row) {
        uint32_t at = 0;
        for (uint32_t step = 0; step < root.depth; ++step) {
          const Node node = nodes[at];
          at = node.left + (rows[row * width + node.feature] >= node.threshold);
        }
        out[row] += values[at];
      }
    }
  }
}

Forest::Arrays Forest::to_arrays() const {
  Arrays out;
  for (size_t t = 0; t < roots_.size(); ++t) {
    const size_t begin = roots_[t].first;
    const size_t end = t + 1 < roots_.size() ? roots_[t + 1].first : nodes_.size();
    out.sizes.push_back(end - begin);
    for (size_t i = begin; i < end; ++i) {
      const bool leaf = nodes_[i].left == i - begin;
      out.number.push_back(leaf ? values_[i] : nodes_[i].threshold);
      out.feature.push_back(nodes_[i].feature);
      out.left.push_back(leaf ? uint16_t{0} : nodes_[i].left);
    }
  }
  return out;
}

Result<Forest> Forest::from_arrays(const Arrays& arrays, size_t width) {
  const auto corrupt = [](const std::string& what) { return Error{ErrorCode::kCorrupt, "", what}; };
  const size_t nodes = arrays.number.size();
  if (arrays.feature.size() != nodes || arrays.left.size() != nodes)
    return corrupt("the trees' arrays have different lengths");
  std::vector<Tree> trees;
  size_t at = 0;
  for (const int32_t size : arrays.sizes) {
    if (size < 1 || at + size > nodes) return corrupt("a tree is cut off");
    Tree tree;
    for (const size_t end = at + size; at < end; ++at) {
      const int left = arrays.left[at] == 0 ? -1 : arrays.left[at];
      tree.left.push_back(left);
      tree.right.push_back(left + 1);
      tree.feature.push_back(arrays.feature[at]);
      tree.threshold.push_back(arrays.number[at]);
      tree.value.push_back(arrays.number[at]);
    }
    trees.push_back(std::move(tree));
  }
  if (at != nodes) return corrupt("there are nodes that belong to no tree");
  auto forest = create(trees, width);
  if (!forest.ok()) return corrupt(forest.error().reason);
  return forest;
}

void Forest::append(const Forest& other) {
  TS_CHECK(width_ == other.width_, "Forest::append: the trees have another row width");
  const uint32_t first = nodes_.size();
  nodes_.insert(nodes_.end(), other.nodes_.begin(), other.nodes_.end());
  values_.insert(values_.end(), other.values_.begin(), other.values_.end());
  for (const Root& root : other.roots_) roots_.push_back({root.first + first, root.depth});
  add_shallow_trees();
}

}  // namespace tensorsmith::learn
