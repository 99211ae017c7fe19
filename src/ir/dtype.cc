#include "ir/dtype.h"

namespace tensorsmith::ir {

std::optional<DType> parse_dtype(std::string_view name) {
  static constexpr DType kAll[] = {DType::kBool, DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                                   DType::kI32,  DType::kU32, DType::kI64, DType::kU64, DType::kF16,
                                   DType::kBF16, DType::kF32, DType::kF64};
  for (DType t : kAll) {
    if (to_string(t) == name) return t;
  }
  return std::nullopt;
}

}  // namespace tensorsmith::ir
