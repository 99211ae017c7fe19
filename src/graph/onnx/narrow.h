// 4-bit integers, which are held one element per byte, as i8 or u8. Quantization and data movement
// support them; any other operator would treat them as bytes and is rejected.
#pragma once

#include <map>

#include "graph/graph.h"

namespace tensorsmith::graph {

// Returns the bits of an element of that ONNX data type if they are fewer than those of its dtype
// here; else 0.
int narrow_bits(int64_t data_type);
// Returns the dtype that holds the data type.
std::optional<ir::DType> narrow_dtype(int64_t data_type);

class NarrowValues {
 public:
  void mark(ValueId id, int bits) { bits_.emplace(id, bits); }
  // Called before the node is inferred: checks its use of 4-bit inputs. QuantizeLinear gets the
  // attribute `bits`. Returns the bits of its outputs, 0 if they have full width.
  Result<int> check(const Graph& graph, Node& node) const;

 private:
  int bits_of(ValueId id) const {
    const auto found = bits_.find(id);
    return found == bits_.end() ? 0 : found->second;
  }
  std::map<ValueId, int> bits_;
};

}  // namespace tensorsmith::graph
