// Elements of less than 32 bits that packed elements are made of, in the form that contractions
// read them.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace tensorsmith::sched::primitives {

// Returns whether products of such elements can be packed for sums of the given dtype: bf16 for
// f32, i8 and u8 for i32.
bool is_element(ir::DType dtype, ir::DType sum);

// The expression i32(raw) - zero or f32(raw).
struct Centered {
  ir::Expr raw;   // an element
  ir::Expr zero;  // i32; undefined: 0
};

// Returns the parts of such an expression, or of one that is 0 where a condition is false; `raw` is
// then an element that represents 0 there.
std::optional<Centered> take_apart(const ir::Expr& e);

}  // namespace tensorsmith::sched::primitives
