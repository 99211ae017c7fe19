// The dtypes that each operator accepts: one set of rules for the builders and the parser.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace tensorsmith::ir {

// Return the error, or nullopt.
std::optional<std::string> type_error(UnaryOp op, DType a);
std::optional<std::string> type_error(BinaryOp op, DType a, DType b);
// The caller checks the arity; b is the second argument's dtype, or a for a single argument.
std::optional<std::string> type_error(Intrinsic intrinsic, DType a, DType b);
std::optional<std::string> select_type_error(DType condition, DType a, DType b);

}  // namespace tensorsmith::ir
