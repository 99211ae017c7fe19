// Boosted trees of few levels, each evaluated for 16 rows at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tensorsmith::learn {

// A tree is complete: node i has the children 2i and 2i + 1, the root is node 1, so that a level's thresholds
// and features are registers that the rows' places index. Nodes that the tree does not have send all rows to
// the left, where the leaf's value is.
//
// 400 trees of six levels (random ones, rows of 170 values) take .8 microseconds a row on a Zen 4, the only processor tried, single steps (learn/gbt/forest.h) 2.2. The rows of a step lie
// side by side: the first four levels load the rows' values of each feature of the level and blend them, the last
// two gather. Blending in the fifth level, and blocks of 16 or 64 rows, take the same time.
class ShallowTrees {
 public:
  static constexpr uint32_t kLevels = 6;
  static constexpr uint32_t kNodes = 1 << kLevels;
  static constexpr size_t kRows = 32;  // of a block
  // A block of 400 trees takes 26 microseconds on a Zen 4, whatever it holds, and single steps as long for about 10 rows.
  static constexpr size_t kLeastRows = 10;

  // Whether this processor can: AVX-512F.
  static bool runs_here();

  struct CompleteTree {
    alignas(64) float threshold[kNodes];  // NaN: no such node
    alignas(64) int32_t feature[kNodes];
    alignas(64) float value[kNodes];  // of leaf i, counted from the left
  };
  void add(const CompleteTree& tree) { trees_.push_back(tree); }
  // out[r] += the sum over the trees, in order, of the value of row r. rows: row-major, width values each.
  // Only where runs_here().
  void predict(std::span<const float> rows, size_t width, std::span<float> out) const;

 private:
  std::vector<CompleteTree> trees_;
};

}  // namespace tensorsmith::learn
