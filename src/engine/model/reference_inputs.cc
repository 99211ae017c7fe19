#include "engine/model/reference_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ranges>
#include <string>

#include "base/rng.h"

namespace tensorsmith::engine {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;
using graph::ValueId;

const Value* value_of(const Graph& graph, const std::vector<ValueId>& ids, size_t i) {
  if (i >= ids.size() || ids[i] == graph::kNoValue) return nullptr;
  return &graph.values[ids[i]];
}

int64_t int_attribute(const Node& node, const char* name, int64_t otherwise) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return otherwise;
  const auto* value = std::get_if<int64_t>(&found->second);
  return value != nullptr ? *value : otherwise;
}

// Length of dimension `axis`, which counts from the end if negative; 0 if it does not exist.
int64_t extent(const Value* value, int64_t axis) {
  if (value == nullptr) return 0;
  const int64_t rank = value->shape.size();
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? value->shape[axis] : 0;
}

int64_t smallest(const Value* value, int64_t first, int64_t count) {
  int64_t least = 0;
  for (int64_t d = first; d < first + count; ++d) {
    const int64_t e = extent(value, d);
    if (e > 0) least = least == 0 ? e : std::min(least, e);
  }
  return least;
}

int64_t elements(const Value* value) {
  if (value == nullptr) return 0;
  int64_t n = 1;
  for (const int64_t e : value->shape) n *= e;
  return n;
}

// An input of an operator that selects an element, and the number of possible selections.
struct Role {
  size_t input;
  int64_t (*limit)(const Graph& graph, const Node& node);
};

const std::multimap<std::string, Role>& roles() {
  const auto along_axis = [](const Graph& g, const Node& n) {
    return extent(value_of(g, n.inputs, 0), int_attribute(n, "axis", 0));
  };
  const auto tuples = [](const Graph& g, const Node& n) {
    return smallest(value_of(g, n.inputs, 0), int_attribute(n, "batch_dims", 0),
                    extent(value_of(g, n.inputs, 1), -1));
  };
  const auto classes = [](const Graph& g, const Node& n) { return extent(value_of(g, n.inputs, 0), 1); };
  // Lengths up to and including that of the whole sequence are valid.
  const auto steps = [](const Graph& g, const Node& n) {
    return extent(value_of(g, n.inputs, 0), int_attribute(n, "layout", 0)) + 1;
  };
  static const std::multimap<std::string, Role> kRoles = {
      {"Gather", {1, along_axis}},
      {"GatherElements", {1, along_axis}},
      {"GatherND", {1, tuples}},
      {"Scatter", {1, along_axis}},
      {"ScatterElements", {1, along_axis}},
      {"ScatterND", {1, tuples}},
      {"OneHot",
       {0,
        [](const Graph& g, const Node& n) {
          const Value* depth = value_of(g, n.inputs, 1);
          if (depth == nullptr || !depth->constant || depth->constant->num_elements() != 1) return int64_t{0};
          return ir::eval_cast(ir::DType::kI64, depth->constant->at(0)).i;
        }}},
      {"MaxUnpool", {1, [](const Graph& g, const Node& n) { return elements(value_of(g, n.outputs, 0)); }}},
      {"NegativeLogLikelihoodLoss", {1, classes}},
      {"SoftmaxCrossEntropyLoss", {1, classes}},
      {"RoiAlign", {2, [](const Graph& g, const Node& n) { return extent(value_of(g, n.inputs, 0), 0); }}},
      {"ReverseSequence",
       {1,
        [](const Graph& g, const Node& n) {
          return extent(value_of(g, n.inputs, 0), int_attribute(n, "time_axis", 0)) + 1;
        }}},
      {"RNN", {4, steps}},
      {"GRU", {4, steps}},
      {"LSTM", {4, steps}},
      {"BitShift",
       {1,
        [](const Graph& g, const Node& n) {
          const Value* x = value_of(g, n.inputs, 0);
          return x == nullptr ? int64_t{0} : int64_t{ir::bits_of(x->dtype)};
        }}},
  };
  return kRoles;
}

// Number of bits of the type's magnitude.
int magnitude_bits(ir::DType dtype) { return ir::bits_of(dtype) - (ir::is_signed_int(dtype) ? 1 : 0); }

// Half of the values are small, the others are of all magnitudes or the ends of the range.
int64_t wide_integer(ir::DType dtype, Rng& rng) {
  const bool has_sign = ir::is_signed_int(dtype);
  const int bits = magnitude_bits(dtype);
  const uint64_t largest = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  const uint64_t kind = rng.below(16);
  uint64_t magnitude = 0;
  if (kind < 8) {
    magnitude = rng.below(9);
  } else if (kind < 15) {
    const int shift = rng.below(bits);
    magnitude = rng.next() & (largest >> shift);
  } else {
    magnitude = largest - rng.below(2);
  }
  const bool negative = has_sign && rng.below(2) == 1;
  if (!negative) return magnitude;
  // The smallest integer is one further from 0 than the largest.
  return kind == 15 ? -static_cast<int64_t>(magnitude) - 1 : -static_cast<int64_t>(magnitude);
}

double wide_float(Rng& rng) {
  if (rng.below(16) == 0) return 0;
  const double magnitude = std::exp2(8 * rng.uniform() - 6);
  return rng.below(2) == 0 ? magnitude : -magnitude;
}

lower::Tensor contents(const Value& value, int64_t limit, Spread spread, Rng& rng) {
  lower::Tensor tensor = lower::Tensor::zeros(value.dtype, value.shape);
  const int64_t n = tensor.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    if (ir::is_float(value.dtype)) {
      const double x = spread == Spread::kWide ? wide_float(rng) : 2 * rng.uniform() - 1;
      tensor.set(i, ir::scalar_float(value.dtype, x));
      continue;
    }
    int64_t x = 0;
    if (limit > 0) {
      // Small types cannot represent all indices of a large dimension.
      const int bits = std::min(magnitude_bits(value.dtype), 62);
      x = rng.below(std::min(limit, int64_t{1} << bits));
    } else if (value.dtype == ir::DType::kBool || spread == Spread::kNarrow) {
      x = rng.below(2);
    } else {
      x = wide_integer(value.dtype, rng);
    }
    tensor.set(i, ir::scalar_int(value.dtype, x));
  }
  return tensor;
}

}  // namespace

std::vector<int64_t> index_limits(const Graph& graph) {
  IdVector<ValueId, int64_t> limits(graph.values.size(), 0);
  const auto lower_limit = [&](ValueId id, int64_t limit) {
    if (id == graph::kNoValue || limit <= 0) return;
    int64_t& known = limits[id];
    known = known == 0 ? limit : std::min(known, limit);
  };
  // Goes from consumers to producers: a limit of a result also limits the integers that it is
  // computed from.
  for (const Node& node : std::views::reverse(graph.nodes)) {
    int64_t of_results = 0;
    for (const ValueId id : node.outputs) {
      const int64_t limit = id == graph::kNoValue ? 0 : limits[id];
      if (limit > 0) of_results = of_results == 0 ? limit : std::min(of_results, limit);
    }
    for (const ValueId id : node.inputs) lower_limit(id, of_results);
    const auto [first, last] = roles().equal_range(node.op);
    for (auto role = first; role != last; ++role) {
      if (role->second.input < node.inputs.size())
        lower_limit(node.inputs[role->second.input], role->second.limit(graph, node));
    }
  }
  std::vector<int64_t> out;
  for (const ValueId id : graph.inputs) {
    const bool integer = ir::is_int(graph.values[id].dtype);
    out.push_back(integer ? limits[id] : 0);
  }
  return out;
}

std::vector<lower::Tensor> reference_inputs(const Graph& graph, uint64_t seed, Spread spread) {
  Rng rng(seed);
  const std::vector<int64_t> limits = index_limits(graph);
  std::vector<lower::Tensor> tensors;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    tensors.push_back(contents(graph.values[graph.inputs[i]], limits[i], spread, rng));
  return tensors;
}

bool mostly_finite(const std::vector<lower::Tensor>& tensors) {
  int64_t floats = 0, finite = 0;
  for (const lower::Tensor& tensor : tensors) {
    if (!ir::is_float(tensor.dtype)) continue;
    const int64_t n = tensor.num_elements();
    floats += n;
    for (int64_t i = 0; i < n; ++i) finite += std::isfinite(tensor.at(i).f) ? 1 : 0;
  }
  return 2 * finite >= floats;
}

}  // namespace tensorsmith::engine
