#include "graph/onnx/narrow.h"

#include <cmath>
#include <limits>

#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;

constexpr NarrowType kTypes[] = {
    {"float8e4m3fn", 17, 8, DType::kU8, FloatCode::kFinite, 4, 7},
    {"float8e4m3fnuz", 18, 8, DType::kU8, FloatCode::kUnsigned, 4, 8},
    {"float8e5m2", 19, 8, DType::kU8, FloatCode::kIeee, 5, 15},
    {"float8e5m2fnuz", 20, 8, DType::kU8, FloatCode::kUnsigned, 5, 16},
    {"uint4", 21, 4, DType::kU8},
    {"int4", 22, 4, DType::kI8},
    {"float4e2m1", 23, 4, DType::kU8, FloatCode::kNoNan, 2, 1},
    {"float8e8m0", 24, 8, DType::kU8, FloatCode::kExponent, 8, 127},
    {"uint2", 25, 2, DType::kU8},
    {"int2", 26, 2, DType::kI8},
};

}  // namespace

double NarrowType::value(int number) const {
  if (number == nan_code() && code != FloatCode::kNoNan) return std::numeric_limits<double>::quiet_NaN();
  if (code == FloatCode::kExponent) return std::ldexp(1.0, number - bias);
  const int fraction_bits = bits - 1 - exponent_bits;
  const int exponent = (number >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = number & ((1 << fraction_bits) - 1);
  const double sign = (number >> (bits - 1) & 1) != 0 ? -1 : 1;
  if (code == FloatCode::kIeee && exponent == (1 << exponent_bits) - 1)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  const int significand = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign * std::ldexp(significand, std::max(exponent, 1) - bias - fraction_bits);
}

int NarrowType::nan_code() const {
  const int sign = 1 << (bits - 1);
  switch (code) {
    case FloatCode::kNone:
      return -1;
    case FloatCode::kIeee:  // the quiet one: the largest exponent and the highest bit of the fraction
      return sign - (1 << (bits - 1 - exponent_bits)) + (1 << (bits - 2 - exponent_bits));
    case FloatCode::kFinite:
      return sign - 1;
    case FloatCode::kUnsigned:
    case FloatCode::kNoNan:
      return sign;
    case FloatCode::kExponent:
      return (1 << bits) - 1;
  }
  return -1;
}

std::vector<int> NarrowType::positive_codes() const {
  std::vector<int> codes;
  const int end = code == FloatCode::kExponent ? 1 << bits : 1 << (bits - 1);
  for (int number = 0; number < end; ++number)
    if (std::isfinite(value(number))) codes.push_back(number);
  return codes;
}

const NarrowType* find_narrow(int64_t data_type) {
  for (const NarrowType& type : kTypes)
    if (type.onnx == data_type) return &type;
  return nullptr;
}

Result<const NarrowType*> NarrowValues::check(const Graph& graph, Node& node) const {
  const NarrowType* read = nullptr;
  ValueId reads = kNoValue;
  for (ValueId id : node.inputs) {
    if (id == kNoValue || find(id) == nullptr) continue;
    read = find(id);
    reads = id;
  }
  const NarrowType* none = nullptr;
  // The type that an attribute names; the emitters know only types that have a dtype.
  const auto named = [&](const char* attribute) {
    const NarrowType* wanted = find_narrow(node.integer(attribute, 0));
    if (wanted != nullptr) node.attributes[attribute] = row_of(wanted->held).onnx;
    return wanted;
  };
  if (node.op == "QuantizeLinear") {
    // The zero point's dtype determines the result's.
    if (const NarrowType* wanted = named("output_dtype"); wanted != nullptr) read = wanted;
    if (read != nullptr) node.attributes.insert_or_assign("bits", int64_t{read->bits});
    return read;
  }
  if (node.op == "CastLike" && find(node.input(1)) != nullptr) {
    node.op = "Cast";
    node.attributes = {{"to", find(node.input(1))->onnx}};
    node.inputs.resize(1);
  }
  if (node.op == "Cast") {
    const NarrowType* wanted = named("to");
    if (wanted != nullptr) node.attributes.insert_or_assign("bits", int64_t{wanted->bits});
    return wanted;
  }
  if (read == nullptr) return none;
  if (node.op == "DequantizeLinear" || node.op == "CastLike" || has_trait(node.op, kReadsShape)) return none;
  if (node.op == "Concat" || has_trait(node.op, kMovesElements)) return read;
  return Error{ErrorCode::kUnsupported, node.name,
               node.op + ": reads '" + graph.values[reads].name + "', which has type " +
                   std::string(read->name) + "; only quantization, casts and data movement support it"};
}

}  // namespace tensorsmith::graph
