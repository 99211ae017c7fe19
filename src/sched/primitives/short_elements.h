// Elements of which a packed element of 32 bits holds several, as contractions read them.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace tensorsmith::sched::primitives {

// Whether such elements are multiplied for sums of that dtype: bf16 for f32, i8 and u8 for i32.
bool is_element(ir::DType dtype, ir::DType sum);

// i32(raw) - zero or f32(raw).
struct Centered {
  ir::Expr raw;   // an element
  ir::Expr zero;  // i32; undefined: 0
};

// The parts of such an expression, or of one that is 0 where a condition is false: there the element is one
// that stands for 0.
std::optional<Centered> take_apart(const ir::Expr& e);

}  // namespace tensorsmith::sched::primitives
