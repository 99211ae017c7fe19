// Casts and quantization of floats of 8 bits and fewer. Decoding reads a table; encoding finds the number's place among the
// values at which the rounding changes, by halving, so that it is exact.
#include <cmath>
#include <limits>

#include "graph/onnx/importer.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;

// The smallest float above x.
double above(double x) {
  return std::nextafterf(static_cast<float>(x), std::numeric_limits<float>::infinity());
}

// The codes in the order of their values, and the smallest magnitudes that are rounded to each but the first.
struct Rounding {
  std::vector<int> codes;
  std::vector<double> begins;
};

Rounding rounding_to(const NarrowType& type, bool saturate, const std::string& mode) {
  Rounding r;
  r.codes = type.positive_codes();
  const auto begin_of_next = [&](size_t i, double low, double high) {
    if (type.code == FloatCode::kExponent) {
      if (mode == "down") return high;
      if (mode == "up") return i == 0 ? above(0) : above(low);
      return low * 1.5;  // halves are rounded up
    }
    // Halves are rounded to the even code.
    const double middle = (low + high) / 2;
    return r.codes[i] % 2 == 0 ? above(middle) : middle;
  };
  for (size_t i = 0; i + 1 < r.codes.size(); ++i)
    r.begins.push_back(begin_of_next(i, type.value(r.codes[i]), type.value(r.codes[i + 1])));
  const bool has_room = type.code != FloatCode::kNoNan;
  if (!saturate && has_room) {
    // The number that would follow the largest one becomes infinity, or NaN.
    const double last = type.value(r.codes.back()), before = type.value(r.codes[r.codes.size() - 2]);
    const double next = type.code == FloatCode::kExponent ? 2 * last : last + (last - before);
    r.begins.push_back(begin_of_next(r.codes.size() - 1, last, next));
    r.codes.push_back(type.code == FloatCode::kIeee ? r.codes.back() + 1 : type.nan_code());
  }
  return r;
}

lower::Tensor table_of(DType dtype, const std::vector<double>& values) {
  lower::Tensor tensor = lower::Tensor::zeros(dtype, {std::ssize(values)});
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<int64_t>(i), ir::is_float(dtype)
                                            ? ir::scalar_float(dtype, values[i])
                                            : ir::scalar_int(dtype, static_cast<int64_t>(values[i])));
  }
  return tensor;
}

}  // namespace

const NarrowType* Importer::narrow_target(const Node& node) const {
  if (node.op == "Cast") return find_narrow(node.integer("to", 0));
  if (node.op == "CastLike") return narrow_.find(node.input(1));
  if (node.op != "QuantizeLinear") return nullptr;
  if (const NarrowType* zero = narrow_.find(node.input(2)); zero != nullptr) return zero;
  return find_narrow(node.integer("output_dtype", 0));
}

bool Importer::converts_narrow_float(const Node& node) const {
  const auto is_float = [](const NarrowType* type) { return type != nullptr && type->is_float(); };
  if (node.op == "Cast" || node.op == "CastLike")
    return is_float(narrow_target(node)) || is_float(narrow_.find(node.input(0)));
  if (node.op == "QuantizeLinear")
    return is_float(narrow_target(node)) || is_float(narrow_.find(node.input(1)));
  if (node.op == "DequantizeLinear")
    return is_float(narrow_.find(node.input(0))) || is_float(narrow_.find(node.input(1)));
  return false;
}

Result<ValueId> Importer::add_part(const Node& node, const std::string& op, std::vector<ValueId> inputs,
                                   std::map<std::string, Attribute> attributes) {
  constexpr int kOpset = 18;
  Node part{node.name + "/" + op + "_" + std::to_string(graph_.values.size()),
            op,
            kOpset,
            std::move(attributes),
            std::move(inputs),
            {}};
  TS_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, add(std::move(part), 1));
  return outputs[0];
}

// Returns the numbers of narrow floats as f32; other values unchanged.
Result<ValueId> Importer::decoded(const Node& node, ValueId id) {
  const NarrowType* type = narrow_.find(id);
  if (type == nullptr || !type->is_float()) return id;
  std::vector<double> values;
  for (int code = 0; code < 1 << type->bits; ++code) values.push_back(type->value(code));
  TS_ASSIGN_OR_RETURN(const ValueId place, add_part(node, "Cast", {id}, {{"to", row_of(DType::kI32).onnx}}));
  return add_part(node, "Gather", {constant(table_of(DType::kF32, values)), place});
}

// Returns the codes of numbers, which are f32.
Result<ValueId> Importer::encoded(const Node& node, ValueId x, const NarrowType& type) {
  const bool saturate = type.code == FloatCode::kNoNan || node.integer("saturate", 1) != 0;
  const auto* mode = node.find<std::string>("round_mode");
  const Rounding rounding = rounding_to(type, saturate, mode == nullptr ? "up" : *mode);
  const auto integer = [&](int64_t value) { return constant(scalar(DType::kI32, value)); };
  const auto number = [&](double value) {
    lower::Tensor tensor = lower::Tensor::zeros(DType::kF32, {});
    tensor.set(0, ir::scalar_float(DType::kF32, value));
    return constant(std::move(tensor));
  };
  const auto op = [&](const char* name, std::vector<ValueId> inputs,
                      std::map<std::string, Attribute> attributes = {}) {
    return add_part(node, name, std::move(inputs), std::move(attributes));
  };
  TS_ASSIGN_OR_RETURN(const ValueId magnitude, op("Abs", {x}));
  // A comparison with NaN is false, so the places after the last begin are never reached.
  std::vector<double> begins = rounding.begins;
  int64_t places = 1;
  while (places < std::ssize(begins) + 1) places *= 2;
  begins.resize(places - 1, std::numeric_limits<double>::quiet_NaN());
  const ValueId table = constant(table_of(DType::kF32, begins));
  ValueId place = kNoValue;
  for (int64_t step = places / 2; step > 0; step /= 2) {
    ValueId at = integer(step - 1);
    if (place != kNoValue) {
      TS_ASSIGN_OR_RETURN(at, op("Add", {place, at}));
    }
    TS_ASSIGN_OR_RETURN(const ValueId begin, op("Gather", {table, at}));
    TS_ASSIGN_OR_RETURN(const ValueId reached, op("GreaterOrEqual", {magnitude, begin}));
    TS_ASSIGN_OR_RETURN(const ValueId more, op("Where", {reached, integer(step), integer(0)}));
    place = more;
    if (at != kNoValue && step != places / 2) {
      // `at` is the place before the step, plus step - 1.
      TS_ASSIGN_OR_RETURN(const ValueId before, op("Sub", {at, integer(step - 1)}));
      TS_ASSIGN_OR_RETURN(place, op("Add", {before, more}));
    }
  }
  std::vector<double> codes(rounding.codes.begin(), rounding.codes.end());
  codes.resize(places, codes.back());
  TS_ASSIGN_OR_RETURN(ValueId code, op("Gather", {constant(table_of(DType::kI32, codes)), place}));
  if (type.code != FloatCode::kExponent) {
    // -0 is less than nothing, but its reciprocal is.
    TS_ASSIGN_OR_RETURN(const ValueId reciprocal, op("Reciprocal", {x}));
    TS_ASSIGN_OR_RETURN(const ValueId below, op("Less", {x, number(0)}));
    TS_ASSIGN_OR_RETURN(const ValueId below_zero, op("Less", {reciprocal, number(0)}));
    TS_ASSIGN_OR_RETURN(ValueId negative, op("Or", {below, below_zero}));
    if (type.code == FloatCode::kUnsigned) {  // there is one zero, and one NaN, which has the sign already
      TS_ASSIGN_OR_RETURN(const ValueId zero, op("Equal", {code, integer(0)}));
      TS_ASSIGN_OR_RETURN(const ValueId nan, op("Equal", {code, integer(type.nan_code())}));
      TS_ASSIGN_OR_RETURN(const ValueId either, op("Or", {zero, nan}));
      TS_ASSIGN_OR_RETURN(const ValueId signed_code, op("Not", {either}));
      TS_ASSIGN_OR_RETURN(negative, op("And", {negative, signed_code}));
    }
    TS_ASSIGN_OR_RETURN(const ValueId sign,
                        op("Where", {negative, integer(int64_t{1} << (type.bits - 1)), integer(0)}));
    TS_ASSIGN_OR_RETURN(code, op("Add", {code, sign}));
  } else {
    TS_ASSIGN_OR_RETURN(const ValueId infinite, op("IsInf", {x}));
    TS_ASSIGN_OR_RETURN(code, op("Where", {infinite, integer(type.nan_code()), code}));
  }
  TS_ASSIGN_OR_RETURN(const ValueId nan, op("IsNaN", {x}));
  TS_ASSIGN_OR_RETURN(code, op("Where", {nan, integer(type.nan_code()), code}));
  return op("Cast", {code}, {{"to", row_of(type.held).onnx}});
}

// Adds Cast, CastLike, QuantizeLinear and DequantizeLinear from or to a narrow float.
Status Importer::convert_narrow_float(const Node& node) {
  const NarrowType* target = narrow_target(node);
  TS_ASSIGN_OR_RETURN(ValueId x, decoded(node, node.input(0)));
  if (node.op == "DequantizeLinear" || node.op == "QuantizeLinear") {
    TS_ASSIGN_OR_RETURN(const ValueId scale, decoded(node, node.input(1)));
    std::map<std::string, Attribute> attributes = node.attributes;
    const bool quantizes = node.op == "QuantizeLinear";
    const bool rounds_itself = quantizes && (target == nullptr || !target->is_float());
    const bool dequantizes_integers = !quantizes && narrow_.find(node.input(0)) == nullptr;
    if (rounds_itself || dequantizes_integers) {  // only the scale was coded
      Node plain = node;
      plain.inputs[1] = scale;
      return finish_node(std::move(plain));
    }
    // The zero point of a float is 0.
    attributes.erase("saturate");
    if (quantizes) attributes.erase("output_dtype");
    TS_ASSIGN_OR_RETURN(
        x, add_part(node, quantizes ? "Bounded.Quotient" : "Bounded.Dequantize", {x, scale}, attributes));
  }
  if (target != nullptr && target->is_float()) {
    TS_ASSIGN_OR_RETURN(x, add_part(node, "Cast", {x}, {{"to", row_of(DType::kF32).onnx}}));
    TS_ASSIGN_OR_RETURN(x, encoded(node, x, *target));
  }
  Node last{node.name, "Identity", kNewestOpset, {}, {x}, node.outputs};
  if (node.op == "Cast" && (target == nullptr || !target->is_float())) {
    last.op = "Cast";
    last.attributes = {{"to", node.integer("to", 0)}};
  } else if (node.op == "CastLike" && (target == nullptr || !target->is_float())) {
    last.op = "CastLike";
    last.inputs.push_back(node.input(1));
  }
  TS_RETURN_IF_ERROR(finish_node(std::move(last)));
  if (target != nullptr) narrow_.mark(node.outputs[0], target);
  return {};
}

}  // namespace tensorsmith::graph
