// 4-bit integers: held one element a byte, as i8 or u8. Quantization and moves know them; any other operator
// would take them for bytes and is refused.
#pragma once

#include <map>

#include "graph/graph.h"

namespace tensorsmith::graph {

// How many bits an element of that ONNX data type has, if they are less than its dtype here; else 0.
int narrow_bits(int64_t data_type);
// The dtype that holds it.
std::optional<ir::DType> narrow_dtype(int64_t data_type);

class NarrowValues {
 public:
  void mark(ValueId id, int bits) { bits_.emplace(id, bits); }
  // Before the node is inferred: what it makes of 4-bit inputs. QuantizeLinear gets the attribute `bits`.
  // Returns the bits of its outputs, 0 if they are of full width.
  Result<int> check(const Graph& graph, Node& node) const;

 private:
  int bits_of(ValueId id) const {
    const auto found = bits_.find(id);
    return found == bits_.end() ? 0 : found->second;
  }
  std::map<ValueId, int> bits_;
};

}  // namespace tensorsmith::graph
