#include "codegen/gpu/tensor_box.h"

#include <algorithm>

#include "codegen/c/expr.h"
#include "ir/analysis.h"
#include "ir/linear.h"
#include "ir/simplify.h"

namespace tensorsmith::codegen {

using ir::Expr;
using ir::For;

namespace {

void collect_conjuncts(const Expr& e, std::vector<Expr>& out) {
  const auto* both = ir::as<ir::Binary>(e);
  if (both == nullptr || both->op != ir::BinaryOp::kAnd) return out.push_back(e);
  collect_conjuncts(both->a, out);
  collect_conjuncts(both->b, out);
}

bool is_zero(const Expr& e) {
  if (const auto* value = ir::as<ir::FloatImm>(e)) return value->value == 0;
  return ir::is_int_value(e, 0);
}

class BoxMatcher {
 public:
  BoxMatcher(const GpuKernel& kernel, const WarpgroupTile& tile) : kernel_(kernel), tile_(tile) {}

  std::optional<TensorBox> match(const ir::Stmt& copy) {
    const ir::Store* store = find_store(copy);
    if (store == nullptr || store->buffer != tile_.buffer) return std::nullopt;
    const auto* select = ir::as<ir::Select>(store->value);
    const auto* load = ir::as<ir::Load>(select != nullptr ? select->a : store->value);
    if (load == nullptr || kernel_.memory.contains(load->buffer.get()) ||
        load->buffer->dtype != tile_.buffer->dtype)
      return std::nullopt;
    if (!find_dimensions(*load, *store)) return std::nullopt;
    if (select != nullptr && (!is_zero(select->b) || !is_edge(select->condition))) return std::nullopt;
    if (!runtime::broken_rule(box_.map).empty()) return std::nullopt;
    box_.from = load->buffer;
    return std::move(box_);
  }

 private:
  // Returns the store inside the loops, which may be restricted to the first thread.
  const ir::Store* find_store(const ir::Stmt& copy) {
    const ir::Stmt* s = &copy;
    for (const auto* loop = ir::as<For>(*s); loop != nullptr; loop = ir::as<For>(*s)) {
      const auto extent = ir::as_int(loop->extent);
      if (!extent || loop->kind == ir::ForKind::kThread || loop->kind == ir::ForKind::kParallel)
        return nullptr;
      loops_.push_back({loop->var, *extent});
      bounds_[loop->var.get()] = {0, *extent - 1};
      s = &loop->body;
    }
    const auto* branch = ir::as<ir::IfThenElse>(*s);
    if (branch == nullptr) return ir::as<ir::Store>(*s);
    if (branch->else_body != nullptr) return nullptr;
    std::vector<Expr> conditions;
    collect_conjuncts(branch->condition, conditions);
    for (const Expr& c : conditions)
      if (!is_first_thread(c)) return nullptr;
    return ir::as<ir::Store>(branch->then_body);
  }

  bool is_first_thread(const Expr& e) const {
    const auto* equal = ir::as<ir::Binary>(e);
    if (equal == nullptr || equal->op != ir::BinaryOp::kEq || !ir::is_int_value(equal->b, 0)) return false;
    const auto* ref = ir::as<ir::VarRef>(equal->a);
    return ref != nullptr && (ref->var == kernel_.index[kThreadX] || ref->var == kernel_.index[kThreadY]);
  }

  // Returns the distance in the tile between iterations of the loop, in elements.
  std::optional<int64_t> stride_in_tile(const ir::LinearSum& place, const ir::Var& var) const {
    int64_t stride = 0;
    for (const auto& [atom, coefficient] : place.terms) {
      if (!ir::uses_var(atom, var)) continue;
      const auto* ref = ir::as<ir::VarRef>(atom);
      if (ref == nullptr || !(ref->var == var)) return std::nullopt;
      stride += coefficient;
    }
    return stride;
  }

  bool find_dimensions(const ir::Load& load, const ir::Store& store) {
    const ir::Buffer& from = load.buffer;
    const auto place = ir::linearize(flat_index(store.buffer, store.indices, bounds_));
    if (place.bad || place.constant != 0) return false;
    // The place in the tile must depend only on the copy's loops.
    for (const auto& [atom, coefficient] : place.terms) {
      const auto* ref = ir::as<ir::VarRef>(atom);
      if (ref == nullptr ||
          std::none_of(loops_.begin(), loops_.end(), [&](const Loop& l) { return l.var == ref->var; }))
        return false;
    }
    const int64_t bytes = ir::bytes_of(from->dtype);
    const auto strides = from->effective_strides();
    box_.map.element_bytes = bytes;
    box_.map.swizzle_bytes = tile_.line_bytes();
    int64_t next = 1;  // elements of the tile between successive indices of this dimension
    size_t used = 0;
    for (size_t d = load.indices.size(); d-- > 0;) {
      const Expr& index = load.indices[d];
      const Loop* own = nullptr;
      for (const Loop& loop : loops_) {
        if (loop.extent == 1 || !ir::uses_var(index, loop.var)) continue;
        if (own != nullptr) return false;
        own = &loop;
      }
      ir::VarMap zero;
      for (const Loop& loop : loops_) zero[loop.var.get()] = Expr(0);
      const Expr begin = ir::simplify(ir::substitute(index, zero), bounds_);
      if (!ir::loads_of(begin).empty()) return false;
      for (const size_t axis : {kThreadX, kThreadY, kThreadZ})
        if (ir::uses_var(begin, kernel_.index[axis])) return false;
      if (own != nullptr) {
        const auto moved = ir::difference(ir::linearize(ir::simplify(index, bounds_)), ir::linearize(begin));
        if (!moved.terms.empty() && moved.terms.size() != 1) return false;
        if (moved.bad || moved.terms.empty() || moved.constant != 0 || moved.terms[0].coefficient != 1)
          return false;
        const auto* ref = ir::as<ir::VarRef>(moved.terms[0].atom);
        if (ref == nullptr || !(ref->var == own->var)) return false;
        if (stride_in_tile(place, own->var) != next) return false;
        next *= own->extent;
        ++used;
      }
      indices_.push_back({index, from->shape[d]});
      if (from->shape[d] == 1 && own == nullptr) continue;
      const bool innermost = box_.map.extents.empty();
      if (innermost && (strides[d] != 1 || own == nullptr || own->extent != tile_.line)) return false;
      if (!innermost) box_.map.strides.push_back(strides[d] * bytes);
      if (!innermost && own != nullptr && own->extent == tile_.lines) box_.lines_at = box_.map.extents.size();
      box_.map.extents.push_back(from->shape[d]);
      box_.map.box.push_back(innermost ? tile_.panel : own == nullptr ? 1 : own->extent);
      box_.begin.push_back(begin);
    }
    size_t loops = 0;
    for (const Loop& loop : loops_) loops += loop.extent > 1 ? 1 : 0;
    return used == loops && next == tile_.buffer->allocation_elements();
  }

  // Returns whether the condition tests that the element is within the buffer, which the
  // accelerator tests too.
  bool is_edge(const Expr& condition) const {
    std::vector<Expr> conjuncts;
    collect_conjuncts(condition, conjuncts);
    return std::all_of(conjuncts.begin(), conjuncts.end(), [&](const Expr& c) {
      const auto* less = ir::as<ir::Binary>(c);
      if (less == nullptr || (less->op != ir::BinaryOp::kLt && less->op != ir::BinaryOp::kLe)) return false;
      const int64_t more = less->op == ir::BinaryOp::kLe ? 1 : 0;
      const auto side = ir::difference(ir::linearize(ir::simplify(less->a, bounds_)),
                                       ir::linearize(ir::simplify(less->b, bounds_)));
      return std::any_of(indices_.begin(), indices_.end(), [&](const auto& own) {
        const auto apart = ir::difference(side, ir::linearize(ir::simplify(own.first, bounds_)));
        return apart.is_constant() && apart.constant == more - own.second;
      });
    });
  }

  struct Loop {
    ir::Var var;
    int64_t extent = 1;
  };

  const GpuKernel& kernel_;
  const WarpgroupTile& tile_;
  std::vector<Loop> loops_;
  ir::VarBounds bounds_;
  std::vector<std::pair<Expr, int64_t>> indices_;  // the buffer's indices with the extents of their
                                                   // dimensions
  TensorBox box_;
};

}  // namespace

std::optional<TensorBox> match_box(const GpuKernel& kernel, const ir::Stmt& copy, const WarpgroupTile& tile) {
  return BoxMatcher(kernel, tile).match(copy);
}

}  // namespace tensorsmith::codegen
