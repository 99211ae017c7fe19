#include "graph/onnx/fixed_inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "graph/ops/op_context.h"
#include "ir/scalar.h"

namespace tensorsmith::graph {

namespace {

Result<ir::Scalar> scalar_of(std::string_view text, ir::DType dtype) {
  const Error bad{ErrorCode::kInvalidArgument, "",
                  "'" + std::string(text) + "' is no value of type " + std::string(ir::to_string(dtype))};
  if (text == "true" || text == "false") {
    if (dtype != ir::DType::kBool) return bad;
    return ir::scalar_int(dtype, text == "true" ? 1 : 0);
  }
  const char* end = text.data() + text.size();
  if (ir::is_float(dtype)) {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end) return bad;
    return ir::scalar_float(dtype, number);
  }
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return bad;
  const ir::Scalar scalar = ir::scalar_int(dtype, number);
  if (scalar.i != number || (number < 0 && ir::is_unsigned_int(dtype))) return bad;
  return scalar;
}

}  // namespace

Result<lower::Tensor> tensor_of_text(const std::string& text, ir::DType dtype,
                                     const std::optional<std::vector<int64_t>>& lengths) {
  std::vector<ir::Scalar> values;
  std::string_view rest = text;
  while (!rest.empty() || values.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    TS_ASSIGN_OR_RETURN(values.emplace_back(), scalar_of(rest.substr(0, comma), dtype));
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
    if (rest.empty()) return Error{ErrorCode::kInvalidArgument, "", "ends with a comma"};
  }
  const auto count = std::ssize(values);
  const bool open = lengths && std::ranges::any_of(*lengths, [](int64_t length) { return length < 0; });
  std::vector<int64_t> shape;
  if (!lengths) {
    if (count > 1) shape = {count};
  } else if (!open) {
    shape = *lengths;
  } else if (lengths->size() == 1) {
    shape = {count};
  } else {
    return Error{ErrorCode::kInvalidArgument, "",
                 "the model leaves lengths of this input open; give its shape, too"};
  }
  if (!is_reasonable(shape)) return Error{ErrorCode::kInvalidArgument, "", "the shape is unreasonable"};
  const int64_t elements = product(shape);
  if (count != elements && count != 1)
    return Error{ErrorCode::kInvalidArgument, "",
                 std::to_string(count) + " numbers are given, the input has " + std::to_string(elements)};
  lower::Tensor tensor = lower::Tensor::zeros(dtype, shape);
  for (int64_t i = 0; i < elements; ++i) tensor.set(i, values[count == 1 ? 0 : i]);
  return tensor;
}

}  // namespace tensorsmith::graph
