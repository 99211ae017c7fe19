#include "codegen/gpu/index_width.h"

#include <limits>

#include "codegen/c/expr.h"
#include "ir/analysis.h"
#include "ir/parts.h"

namespace tensorsmith::codegen {

using ir::Expr;

namespace {

class WidthCheck {
 public:
  explicit WidthCheck(const GpuKernel& kernel) {
    for (size_t axis = 0; axis < kGpuAxes; ++axis)
      bounds_[kernel.index[axis].get()] = {0, kernel.extents[axis] - 1};
    visit(kernel.body);
  }
  bool fits() const { return fits_; }

 private:
  static bool is_narrow(const ir::Interval& r) {
    return r.min >= std::numeric_limits<int32_t>::min() && r.max <= std::numeric_limits<int32_t>::max();
  }

  // Loaded values are 64 bits wide whatever the width of indices is.
  void check(const Expr& e) {
    ir::for_each_expr(e, [&](const Expr& x) {
      if (const auto* load = ir::as<ir::Load>(x)) check_place(load->buffer, load->indices);
      if (x.dtype() != ir::DType::kI64 || ir::as<ir::Load>(x) != nullptr) return;
      if (ir::loads_of(x).empty() && !is_narrow(ir::bounds_of(x, bounds_))) fits_ = false;
    });
  }

  void check_place(const ir::Buffer& buffer, const std::vector<Expr>& indices) {
    if (buffer->allocation_elements() > std::numeric_limits<int32_t>::max()) fits_ = false;
    const Expr flat = flat_index(buffer, indices, bounds_);
    ir::for_each_expr(flat, [&](const Expr& x) {
      const bool plain = x.dtype() == ir::DType::kI64 && ir::loads_of(x).empty();
      if (plain && !is_narrow(ir::bounds_of(x, bounds_))) fits_ = false;
    });
  }

  void visit(const ir::Stmt& s) {
    if (!fits_) return;
    ir::for_each_own_expr(s, [&](const Expr& e) { check(e); });
    if (const auto* store = ir::as<ir::Store>(s)) check_place(store->buffer, store->indices);
    if (const auto* loop = ir::as<ir::For>(s)) {
      const int64_t most = ir::bounds_of(loop->extent, bounds_).max;
      bounds_[loop->var.get()] = {0, most == ir::Interval::kPosInf ? most : std::max<int64_t>(most - 1, 0)};
    }
    ir::for_each_part(s, [&](const ir::Stmt& part) { visit(part); });
  }

  ir::VarBounds bounds_;
  bool fits_ = true;
};

}  // namespace

bool indices_fit_32_bits(const GpuKernel& kernel) { return WidthCheck(kernel).fits(); }

}  // namespace tensorsmith::codegen
