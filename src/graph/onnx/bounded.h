// Results whose number of rows depends on the data, at their largest shape
// (ImportOptions::bounded): tracks which dimensions end in padding, and which operators keep data
// and padding separate.
#pragma once

#include <map>

#include "graph/graph.h"

namespace tensorsmith::graph {

class Bounds {
 public:
  // Padded dimensions of a value, each with the i64 scalar that is the number of data elements in
  // it.
  using Dims = std::map<size_t, ValueId>;

  const Dims* of(ValueId id) const {
    const auto found = dims_.find(id);
    return found == dims_.end() ? nullptr : &found->second;
  }
  void mark(ValueId id, size_t dim, ValueId count) { dims_[id][dim] = count; }

  // Called after the node was inferred; determines the padded dimensions of its outputs. Returns
  // kUnsupported if the node would mix padding with data, or computes with the number of elements
  // of a padded tensor.
  Status propagate(const Graph& graph, const Node& node);

 private:
  Result<Dims> outputs_of(const Graph& graph, const Node& node) const;

  std::map<ValueId, Dims> dims_;
};

}  // namespace tensorsmith::graph
