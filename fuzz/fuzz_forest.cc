// Input: the arrays of a model file's forest. Making a forest of them never crashes, and an accepted
// forest can be evaluated and converted back to arrays. Layout: the width, the number of trees and the
// number of nodes of each tree, a byte each, then 8 bytes for each node.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "learn/gbt/forest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  if (size < 2 || size - 2 < data[1]) return 0;
  const int width = data[0];
  learn::Forest::Arrays arrays;
  for (size_t tree = 0; tree < data[1]; ++tree) arrays.sizes.push_back(data[2 + tree]);
  struct {
    float number;
    uint16_t feature, left;
  } node{};
  for (size_t at = 2 + arrays.sizes.size(); at + sizeof node <= size; at += sizeof node) {
    std::memcpy(&node, data + at, sizeof node);
    arrays.number.push_back(node.number);
    arrays.feature.push_back(node.feature);
    arrays.left.push_back(node.left);
  }
  const auto forest = learn::Forest::from_arrays(arrays, width);
  if (!forest.ok()) return 0;
  constexpr size_t kRows = 9;
  std::vector<float> rows(kRows * static_cast<size_t>(forest->width()), 0.5F);
  std::vector<float> values(kRows);
  forest->predict(rows, values);
  if (!learn::Forest::from_arrays(forest->to_arrays(), width).ok()) std::abort();
  return 0;
}
