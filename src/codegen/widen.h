// Copies of short floats that are f32 from the start.
#pragma once

#include "ir/stmt.h"

namespace tensorsmith::codegen {

// An intermediate buffer of f16 or bf16 into which elements are only moved, and whose readers all convert them, holds
// f32: elements are converted where they are moved, and not once for each product.
//
//   alloc P: f16[18]                                       alloc P: f32[18]
//     for i in 18                                            for i in 18
//       P[i] = select(i > 0, x[i - 1], 0)          =>          P[i] = select(i > 0, f32(x[i - 1]), 0)
//     ... f32(P[j + k]) * w[k] ...                           ... P[j + k] * w[k] ...
//
// The program's meaning does not change.
ir::Program widen_copies(const ir::Program& program);

}  // namespace tensorsmith::codegen
