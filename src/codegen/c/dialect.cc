#include "codegen/c/dialect.h"

#include "codegen/c/codegen.h"

namespace tensorsmith::codegen {

using ir::DType;

namespace {

std::string_view memory_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return "uint8_t";
    case DType::kI8:
      return "int8_t";
    case DType::kI16:
      return "int16_t";
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return "uint16_t";
    case DType::kI32:
      return "int32_t";
    case DType::kU32:
      return "uint32_t";
    case DType::kI64:
      return "int64_t";
    case DType::kU64:
      return "uint64_t";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
  }
  throw_internal_error(__FILE__, __LINE__, "unknown dtype");
}

std::string_view value_type(DType dtype) {
  if (dtype == DType::kBool) return "bool";
  if (dtype == DType::kF16 || dtype == DType::kBF16) return "float";
  return memory_type(dtype);
}

// Not part of the header, which callers of kernels include too: the pragma must not affect their
// loops.
constexpr std::string_view kPrologue =
    "#if defined(__GNUC__) && !defined(__clang__)\n"
    "/* GCC 12's own vectorizer gets sums of ts_dot4() wrong. What gains from vectors is written with them. "
    "*/\n"
    "#pragma GCC optimize(\"no-tree-vectorize\")\n"
    "#endif\n";

}  // namespace

const Dialect& c99() {
  static const Dialect dialect = {.header = kCHeaderName,
                                  .prologue = kPrologue,
                                  .restrict_pointer = "restrict",
                                  .function = "static",
                                  .aligned = "TS_ALIGNED",
                                  .vectors = "TENSORSMITH_VECTORS",
                                  .value_type = value_type,
                                  .memory_type = memory_type};
  return dialect;
}

std::string_view value_suffix(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? "f32" : ir::to_string(dtype);
}

}  // namespace tensorsmith::codegen
