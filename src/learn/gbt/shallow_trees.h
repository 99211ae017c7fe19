// Boosted trees with few levels, evaluated for 16 rows at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tensorsmith::learn {

// Trees are complete: node i has the children 2i and 2i + 1 and the root is node 1, so that the
// thresholds and features of a level are in registers that are indexed by the rows' nodes. Nodes
// that the original tree lacks send all rows to the left, where the leaf's value is.
//
// On a Zen 4, the only processor tried, 400 trees of six levels (random ones, rows of 170 values)
// take 0.8 microseconds per row, versus 2.2 with single steps (learn/gbt/forest.h). The rows of a
// step are transposed: the first four levels load the rows' values of each feature of the level and
// blend them; the last two gather. Blending in the fifth level, and blocks of 16 or 64 rows, take
// the same time.
class ShallowTrees {
 public:
  static constexpr uint32_t kLevels = 6;
  static constexpr uint32_t kNodes = 1 << kLevels;
  static constexpr size_t kRows = 32;  // rows of a block
  // Least number of rows worth using a block for. A block takes 26 microseconds for 400 trees on a
  // Zen 4, however few rows it holds; single steps take as long for about 10 rows.
  static constexpr size_t kLeastRows = 10;

  // Whether this processor has AVX-512F.
  static bool runs_here();

  struct CompleteTree {
    alignas(64) float threshold[kNodes];  // NaN: the original tree has no such node
    alignas(64) int32_t feature[kNodes];
    alignas(64) float value[kNodes];  // of leaf i, from left to right
  };
  void add(const CompleteTree& tree) { trees_.push_back(tree); }
  // Adds to out[r] the sum, over the trees in order, of the value for row r. rows: row-major,
  // `width` values per row. Requires runs_here().
  void predict(std::span<const float> rows, size_t width, std::span<float> out) const;

 private:
  std::vector<CompleteTree> trees_;
};

}  // namespace tensorsmith::learn
