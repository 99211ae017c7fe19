// Overlap of boxes as ONNX Runtime computes it. Internal to the operators.
#pragma once

#include "ir/expr.h"

namespace tensorsmith::graph {

struct BoxExprs {
  ir::Expr y1, x1, y2, x2;
};
// Makes a box of two opposite corners (y, x, y, x), or of its centre (x, y, width, height).
BoxExprs box_of(const ir::Expr (&v)[4], bool centered);
// Returns whether the intersection over the union is above the threshold.
ir::Expr overlaps(const BoxExprs& a, const BoxExprs& b, const ir::Expr& threshold);

}  // namespace tensorsmith::graph
