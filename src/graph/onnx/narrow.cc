#include "graph/onnx/narrow.h"

#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

constexpr int64_t kUint4 = 21, kInt4 = 22;

}  // namespace

int narrow_bits(int64_t data_type) { return data_type == kUint4 || data_type == kInt4 ? 4 : 0; }

std::optional<ir::DType> narrow_dtype(int64_t data_type) {
  if (data_type == kUint4) return ir::DType::kU8;
  if (data_type == kInt4) return ir::DType::kI8;
  return std::nullopt;
}

Result<int> NarrowValues::check(const Graph& graph, Node& node) const {
  int bits = 0;
  ValueId reads = kNoValue;
  for (ValueId id : node.inputs) {
    if (id == kNoValue || bits_of(id) == 0) continue;
    bits = bits_of(id);
    reads = id;
  }
  if (node.op == "QuantizeLinear") {
    // The zero point's dtype determines the result's.
    const int64_t wanted = node.integer("output_dtype", 0);
    if (narrow_bits(wanted) != 0) {
      bits = narrow_bits(wanted);
      node.attributes["output_dtype"] = int64_t{wanted == kUint4 ? 2 : 3};  // u8, i8
    }
    if (bits != 0) node.attributes.insert_or_assign("bits", int64_t{bits});
    return bits;
  }
  if (bits == 0) return 0;
  if (node.op == "DequantizeLinear" || node.op == "Cast" || has_trait(node.op, kReadsShape)) return 0;
  if (node.op == "Concat" || has_trait(node.op, kMovesElements)) return bits;
  return Error{ErrorCode::kUnsupported, node.name,
               node.op + ": reads '" + graph.values[reads].name +
                   "', which has 4-bit elements; only quantization and data movement support them"};
}

}  // namespace tensorsmith::graph
