// Element types that have no dtype here: integers of 4 and 2 bits, and floats of 8 bits and fewer. They are held one
// element per byte, integers as their values and floats as their codes. Quantization, casts and data movement support
// them; any other operator would treat them as bytes and is rejected.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

// The codes of a narrow float that are not finite numbers; kExponent alone has no sign bit. Sources: ONNX, "Float stored in 8
// bits", and OCP's MX formats.
enum class FloatCode : uint8_t {
  kNone,      // an integer
  kIeee,      // the largest exponent is for infinity and NaN
  kFinite,    // NaN is the code of all ones ("fn")
  kUnsigned,  // NaN is the code of a negative zero, which does not exist ("fnuz")
  kNoNan,     // all codes are numbers
  kExponent,  // no sign and no fraction; NaN is the code of all ones
};

struct NarrowType {
  std::string_view name;  // ONNX's, in lower case
  int64_t onnx = 0;       // TensorProto.DataType
  int bits = 0;
  ir::DType held = ir::DType::kU8;
  FloatCode code = FloatCode::kNone;
  int exponent_bits = 0, bias = 0;

  bool is_float() const { return code != FloatCode::kNone; }
  // Value of a code; the sign of a float is that of its highest bit.
  double value(int code) const;
  // Codes of the numbers that are not negative, ascending.
  std::vector<int> positive_codes() const;
  // Code of NaN; where there is none, of the negative zero that takes its place. -1 for integers.
  int nan_code() const;
};

// Returns null if the data type is none of them.
const NarrowType* find_narrow(int64_t data_type);

// The values of a graph that have such a type.
class NarrowValues {
 public:
  void mark(ValueId id, const NarrowType* type) {
    if (type != nullptr) types_.insert_or_assign(id, type);
  }
  // Returns null if the value has a dtype.
  const NarrowType* find(ValueId id) const {
    const auto found = types_.find(id);
    return found == types_.end() ? nullptr : found->second;
  }
  // Called before the node is inferred: checks its use of such inputs, and gives QuantizeLinear and Cast to an integer
  // type the attribute `bits`. Returns the type of its outputs; null if they have a dtype.
  Result<const NarrowType*> check(const Graph& graph, Node& node) const;

 private:
  std::map<ValueId, const NarrowType*> types_;
};

}  // namespace tensorsmith::graph
