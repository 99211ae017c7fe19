#include "graph/ops/registry.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace tensorsmith::graph {

namespace {

std::map<std::string_view, const OpEntry*> make_table() {
  std::map<std::string_view, const OpEntry*> table;
  for (const auto& family :
       {binary_operators(),        bounded_operators(),  constant_operators(),   conv_operators(),
        deform_conv_operators(),   einsum_operators(),   fold_image_operators(), gather_operators(),
        gemm_operators(),          loss_operators(),     move_operators(),       nbits_operators(),
        normalization_operators(), pad_operators(),      pool_operators(),       quantize_operators(),
        reduce_operators(),        reshape_operators(),  resize_operators(),     sample_operators(),
        signal_operators(),        slice_operators(),    softmax_operators(),    text_operators(),
        topk_operators(),          training_operators(), transpose_operators(),  unary_operators()}) {
    for (const OpEntry& entry : family) {
      const bool fresh = table.emplace(entry.op, &entry).second;
      TS_CHECK(fresh, "operator registered twice: " + std::string(entry.op));
    }
  }
  return table;
}

bool in_class(ir::DType dtype, char dtype_class) {
  switch (dtype_class) {
    case 'a':
    case 'o':
      return true;
    case 'n':
      return dtype != ir::DType::kBool;
    case 'f':
      return ir::is_float(dtype);
    case 'i':
      return ir::is_int(dtype);
    case 'u':
      return ir::is_unsigned_int(dtype);
    case 'b':
      return dtype == ir::DType::kBool;
    default:
      TS_CHECK(false, "unknown dtype class in a signature");
      return false;
  }
}

bool matches(ir::DType dtype, char letter, char t_class, std::optional<ir::DType>& t,
             std::optional<ir::DType>& u) {
  switch (letter) {
    case 'T':
      if (!t) t = dtype;
      return *t == dtype && in_class(dtype, t_class);
    case 'U':
      if (!u) u = dtype;
      return *u == dtype;
    case 'I':
      return dtype == ir::DType::kI32 || dtype == ir::DType::kI64;
    case 'L':
      return dtype == ir::DType::kI64;
    case 'B':
      return dtype == ir::DType::kBool;
    case 'F':
      return ir::is_float(dtype);
    case 'N':
      return dtype != ir::DType::kBool;
    case 'A':
      return true;
    default:
      TS_CHECK(false, "unknown letter in a signature");
      return false;
  }
}

const std::map<std::string_view, const OpEntry*>& operator_table() {
  static const std::map<std::string_view, const OpEntry*> table = make_table();
  return table;
}

}  // namespace

const OpEntry* find_operator(std::string_view op) {
  const auto found = operator_table().find(op);
  return found == operator_table().end() ? nullptr : found->second;
}

bool has_trait(std::string_view op, uint32_t traits) {
  const OpEntry* entry = find_operator(op);
  return entry != nullptr && (entry->traits & traits) != 0;
}

std::vector<std::string_view> operator_names() {
  std::vector<std::string_view> names;
  for (const auto& [op, entry] : operator_table()) {
    if (op != kMoveOperator && !op.starts_with(kBoundedPrefix)) names.push_back(op);
  }
  for (const FoldEntry& entry : data_dependent_operators()) names.push_back(entry.op);
  std::sort(names.begin(), names.end());
  return names;
}

const FoldEntry* find_fold_operator(std::string_view op) {
  for (const FoldEntry& entry : data_dependent_operators()) {
    if (entry.op == op) return &entry;
  }
  return nullptr;
}

Status check_signature(const OpContext& ctx, std::string_view signature) {
  const char t_class = signature[0];
  std::string_view letters = signature.substr(2);
  const bool variadic = !letters.empty() && letters.back() == '*';
  if (variadic) letters.remove_suffix(1);
  if (ctx.num_inputs() > letters.size() && !variadic) {
    return ctx.invalid("has " + std::to_string(ctx.num_inputs()) + " inputs, at most " +
                       std::to_string(letters.size()) + " are allowed");
  }
  std::optional<ir::DType> t;
  std::optional<ir::DType> u;
  for (size_t i = 0; i < std::max(ctx.num_inputs(), letters.size()); ++i) {
    const char letter = letters[std::min(i, letters.size() - 1)];
    const bool optional = std::islower(static_cast<unsigned char>(letter)) != 0;
    if (!ctx.has(i)) {
      if (optional) continue;
      return ctx.invalid("input " + std::to_string(i) + " is missing");
    }
    const char upper = std::toupper(static_cast<unsigned char>(letter));
    if (!matches(ctx.dtype(i), upper, t_class, t, u)) {
      return ctx.unsupported("input " + std::to_string(i) + " has dtype " +
                             std::string(ir::to_string(ctx.dtype(i))) +
                             ", which does not fit the operator or its other inputs");
    }
  }
  return {};
}

}  // namespace tensorsmith::graph
