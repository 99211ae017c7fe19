// Stores copies of 16-bit floats as f32.
#pragma once

#include "ir/stmt.h"

namespace tensorsmith::codegen {

// An intermediate buffer of f16 or bf16 is changed to f32 if its elements are only moved and all
// its readers convert them. Each element is then converted once when it is moved, and not once per
// product.
//
//   alloc P: f16[18]                                       alloc P: f32[18]
//     for i in 18                                            for i in 18
//       P[i] = select(i > 0, x[i - 1], 0)          =>          P[i] = select(i > 0, f32(x[i - 1]), 0)
//     ... f32(P[j + k]) * w[k] ...                           ... P[j + k] * w[k] ...
//
// The program's meaning does not change.
ir::Program widen_copies(const ir::Program& program);

}  // namespace tensorsmith::codegen
