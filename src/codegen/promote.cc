#include "codegen/promote.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/matrix_nest.h"
#include "ir/analysis.h"
#include "ir/linear.h"
#include "ir/parts.h"
#include "ir/structural.h"

namespace tensorsmith::codegen {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::For;
using ir::ForKind;
using ir::Stmt;
using ir::Var;

// Code is emitted for each accumulator; with more accumulators than this, promotion gains nothing
// over memory.
constexpr int64_t kMaxSlots = 64;

// The loops and conditions around a statement, as far as they are inside the loop under
// consideration.
struct Context {
  std::vector<const For*> loops;
  std::vector<Expr> conditions;
};

struct PromotedAccess {
  const std::vector<Expr>* indices = nullptr;
  std::vector<const For*> loops;  // inner loops that the indices use, vectorized ones last
  std::vector<Expr> guards;       // conditions that use only these loops and outer variables
  bool other_guards = false;      // some conditions mix these loops with other inner loops
  bool is_store = false;
};

std::vector<const For*> loops_used(const std::vector<Expr>& indices, const std::vector<const For*>& loops) {
  std::vector<const For*> used;
  for (const For* loop : loops) {
    if (std::any_of(indices.begin(), indices.end(),
                    [&](const Expr& e) { return ir::uses_var(e, loop->var); }))
      used.push_back(loop);
  }
  std::stable_partition(used.begin(), used.end(),
                        [](const For* loop) { return loop->kind != ForKind::kVectorized; });
  return used;
}

void append_conjuncts(const Expr& e, std::vector<Expr>& out) {
  if (const auto* op = ir::as<ir::Binary>(e); op != nullptr && op->op == ir::BinaryOp::kAnd) {
    append_conjuncts(op->a, out);
    append_conjuncts(op->b, out);
    return;
  }
  out.push_back(e);
}

// Calls fn for every access to the buffer within a statement.
class Walker {
 public:
  using Callback = std::function<void(const std::vector<Expr>&, const Context&, bool is_store)>;
  Walker(const ir::BufferNode* buffer, Callback fn) : buffer_(buffer), fn_(std::move(fn)) {}

  void walk(const Stmt& s) {
    ir::for_each_own_expr(s, [&](const Expr& e) { loads(e); });
    if (const auto* branch = ir::as<ir::IfThenElse>(s)) {
      context_.conditions.push_back(branch->condition);
      if (branch->then_body) walk(branch->then_body);
      context_.conditions.back() = !branch->condition;
      if (branch->else_body) walk(branch->else_body);
      context_.conditions.pop_back();
      return;
    }
    const auto* store = ir::as<ir::Store>(s);
    if (store != nullptr && store->buffer.get() == buffer_) fn_(store->indices, context_, true);
    const auto* loop = ir::as<For>(s);
    if (loop != nullptr) context_.loops.push_back(loop);
    ir::for_each_part(s, [&](const Stmt& part) { walk(part); });
    if (loop != nullptr) context_.loops.pop_back();
  }

 private:
  void loads(const Expr& e) {
    ir::for_each_expr(e, [&](const Expr& x) {
      const auto* load = ir::as<ir::Load>(x);
      if (load != nullptr && load->buffer.get() == buffer_) fn_(load->indices, context_, false);
    });
  }
  const ir::BufferNode* buffer_;
  Callback fn_;
  Context context_;
};

// Returns whether distinct values of the loops give distinct elements: the coefficients must be
// those of a mixed-radix number.
bool is_injective(const PromotedAccess& access, const Buffer& buffer) {
  const std::vector<int64_t> strides = buffer->effective_strides();
  std::vector<int64_t> coefficients(access.loops.size(), 0);
  for (size_t d = 0; d < access.indices->size(); ++d) {
    const auto index = ir::as_affine((*access.indices)[d]);
    if (!index) return false;
    for (const auto& [var, coefficient] : index->terms)
      for (size_t l = 0; l < access.loops.size(); ++l)
        if (access.loops[l]->var == var) coefficients[l] += coefficient * strides[d];
  }
  std::vector<std::pair<int64_t, int64_t>> digits;  // |coefficient|, extent
  for (size_t l = 0; l < access.loops.size(); ++l)
    digits.emplace_back(std::abs(coefficients[l]), ir::as_int(access.loops[l]->extent).value());
  std::sort(digits.begin(), digits.end());
  int64_t reach = 0;
  for (const auto& [coefficient, extent] : digits) {
    if (coefficient <= reach && extent > 1) return false;
    reach += coefficient * (extent - 1);
  }
  return true;
}

class Promoter {
 public:
  Promoter(const ir::Program& program, int registers, int vector_bytes, const sched::MatrixUnits& matrix)
      : program_(program), registers_(registers), vector_bytes_(vector_bytes), matrix_(matrix) {}

  Stmt rewrite(const Stmt& s) {
    const auto* loop = ir::as<For>(s);
    return loop != nullptr ? rewrite_for(s, *loop) : rewrite_parts(s);
  }

 private:
  struct Promotion {
    Buffer from;
    Buffer to;
    PromotedAccess access;  // one of the accesses, which stands for all
  };

  Stmt rewrite_for(const Stmt& s, const For& loop) {
    if (match_matrix_nest(loop, matrix_)) return s;
    std::vector<Promotion> promotions;
    const bool reducible = loop.kind == ForKind::kSerial || loop.kind == ForKind::kUnrolled;
    if (reducible && ir::as_int(loop.extent).value_or(1) > 1) {
      const bool innermost = loop.kind == ForKind::kUnrolled || !contains_serial_loop(loop.body);
      promotions = find(loop, innermost ? kMaxSlots : registers_);
    }
    Stmt current = s;
    for (const Promotion& p : promotions) current = redirect(current, p);
    // Inner loops may accumulate other buffers.
    const For& now = std::get<For>(current->kind);
    outer_[now.var.get()] = {0, ir::as_int(now.extent).value_or(ir::Interval::kPosInf) - 1};
    current = rewrite_parts(current);
    for (const Promotion& p : promotions)
      current = ir::make_allocate(p.to, ir::make_seq({copy(p, true), std::move(current), copy(p, false)}));
    return current;
  }

  Stmt rewrite_parts(const Stmt& s) {
    return ir::map_parts(s, [this](const Stmt& part) { return rewrite(part); });
  }

  static bool contains_serial_loop(const Stmt& s) {
    bool found = false;
    ir::for_each_stmt(s, [&](const Stmt& inner) {
      const auto* loop = ir::as<For>(inner);
      if (loop != nullptr && loop->kind == ForKind::kSerial) found = true;
    });
    return found;
  }

  std::vector<Promotion> find(const For& loop, int64_t limit) {
    std::vector<Buffer> stored;
    std::vector<const ir::BufferNode*> own;
    bool parallel = false;
    ir::for_each_stmt(loop.body, [&](const Stmt& s) {
      if (const auto* store = ir::as<ir::Store>(s))
        if (std::find(stored.begin(), stored.end(), store->buffer) == stored.end())
          stored.push_back(store->buffer);
      if (const auto* allocate = ir::as<ir::Allocate>(s)) own.push_back(allocate->buffer.get());
      if (const auto* inner = ir::as<For>(s))
        parallel = parallel || inner->kind == ForKind::kParallel || inner->kind == ForKind::kThread;
    });
    std::vector<Promotion> found;
    if (parallel) return found;
    int64_t slots = 0;
    for (const Buffer& buffer : stored) {
      if (becomes_registers(buffer)) continue;
      if (std::find(own.begin(), own.end(), buffer.get()) != own.end()) continue;
      std::optional<PromotedAccess> access = common_access(loop, buffer);
      if (!access) continue;
      slots += slots_of(*access, buffer);
      if (slots > limit) return {};
      found.push_back({buffer, make_copy_buffer(*access, buffer), std::move(*access)});
    }
    return found;
  }

  // Returns whether the whole buffer will live in registers without promotion: it is small, no loop
  // that is not unrolled selects its elements, and its vectors have a power of two of lanes. LLVM
  // did not promote a buffer with vectors of 12 lanes that was also read by scalars.
  bool becomes_registers(const Buffer& buffer) {
    const int64_t bytes = ir::bytes_of(buffer->dtype, buffer->allocation_elements());
    if (is_output(buffer) || bytes > kMaxSlots * vector_bytes_) return false;
    const auto [known, fresh] = fixed_places_.try_emplace(buffer.get(), true);
    if (!fresh) return known->second;
    bool& fixed = known->second;
    const auto is_fixed = [](const For& loop) {
      if (loop.kind == ForKind::kUnrolled) return true;
      const auto lanes = ir::as_int(loop.extent);
      return loop.kind == ForKind::kVectorized && lanes && std::has_single_bit(static_cast<uint64_t>(*lanes));
    };
    Walker(buffer.get(), [&](const std::vector<Expr>& indices, const Context& context, bool) {
      for (const For* loop : loops_used(indices, context.loops)) fixed = fixed && is_fixed(*loop);
    }).walk(program_.body);
    return fixed;
  }

  int64_t slots_of(const PromotedAccess& access, const Buffer& buffer) const {
    int64_t slots = 1;
    for (const For* l : access.loops) {
      const int64_t extent = ir::as_int(l->extent).value();
      const int64_t bytes = ir::bytes_of(buffer->dtype, extent);
      slots *= l->kind == ForKind::kVectorized ? (bytes + vector_bytes_ - 1) / vector_bytes_ : extent;
      if (slots > (1 << 20)) break;
    }
    return slots;
  }

  static Buffer make_copy_buffer(const PromotedAccess& access, const Buffer& buffer) {
    std::vector<int64_t> shape;
    for (const For* l : access.loops) shape.push_back(ir::as_int(l->extent).value());
    return ir::make_buffer(buffer->name + ".acc", buffer->dtype, std::move(shape), ir::MemoryScope::kLocal);
  }

  // Returns the access that all accesses to the buffer in the loop's body agree on, if they do and
  // form a reduction.
  std::optional<PromotedAccess> common_access(const For& loop, const Buffer& buffer) const {
    std::optional<PromotedAccess> first;
    std::vector<Var> canonical;
    std::vector<Expr> canonical_indices;
    std::vector<Expr> canonical_guards;
    bool ok = true;
    bool loaded = false;
    bool guards_differ = false;
    Walker(buffer.get(), [&](const std::vector<Expr>& indices, const Context& context, bool is_store) {
      if (!ok) return;
      loaded = loaded || !is_store;
      PromotedAccess access = analyze(loop, indices, context, ok);
      if (!ok) return;
      guards_differ = guards_differ || access.other_guards;
      if (!first) {
        for (const For* l : access.loops) canonical.emplace_back(l->var.name());
      } else if (access.loops.size() != canonical.size()) {
        ok = false;
        return;
      }
      ir::VarMap map;
      for (size_t l = 0; l < canonical.size(); ++l) {
        map[access.loops[l]->var.get()] = canonical[l];
        if (!first) continue;
        const For& a = *access.loops[l];
        const For& b = *first->loops[l];
        const bool vectors = a.kind == ForKind::kVectorized;
        if (ir::as_int(a.extent) != ir::as_int(b.extent) || vectors != (b.kind == ForKind::kVectorized))
          ok = false;
      }
      std::vector<Expr> renamed;
      for (const Expr& e : indices) renamed.push_back(ir::substitute(e, map));
      std::vector<Expr> renamed_guards;
      for (const Expr& e : access.guards) renamed_guards.push_back(ir::substitute(e, map));
      if (!first) {
        ok = ok && is_injective(access, buffer);
        first = std::move(access);
        canonical_indices = std::move(renamed);
        canonical_guards = std::move(renamed_guards);
        return;
      }
      ok = ok && ir::structural_equal(renamed, canonical_indices);
      guards_differ = guards_differ || !ir::structural_equal(renamed_guards, canonical_guards);
    }).walk(loop.body);
    if (!first || !ok || !loaded) return std::nullopt;
    // The accesses have different guards, so the copies have none and must be in range without any.
    if (guards_differ) {
      if (!in_range(*first, buffer)) return std::nullopt;
      first->guards.clear();
    }
    return first;
  }

  // Returns whether the loops' extents alone keep the access in range.
  bool in_range(const PromotedAccess& access, const Buffer& buffer) const {
    ir::VarBounds bounds = outer_;
    for (const For* l : access.loops) bounds[l->var.get()] = {0, ir::as_int(l->extent).value() - 1};
    for (size_t d = 0; d < access.indices->size(); ++d) {
      const ir::Interval r = ir::bounds_of((*access.indices)[d], bounds);
      if (!r.bounded() || r.min < 0 || r.max >= buffer->shape[d]) return false;
    }
    return true;
  }

  static PromotedAccess analyze(const For& loop, const std::vector<Expr>& indices, const Context& context,
                                bool& ok) {
    PromotedAccess access;
    access.indices = &indices;
    access.loops = loops_used(indices, context.loops);
    const auto used = [&](const For* l) {
      return std::find(access.loops.begin(), access.loops.end(), l) != access.loops.end();
    };
    const auto fail = [&] {
      ok = false;
      return access;
    };
    for (const Expr& e : indices) {
      if (ir::uses_var(e, loop.var) || !ir::loads_of(e).empty()) return fail();
    }
    for (const For* l : access.loops)
      if (!ir::as_int(l->extent) || *ir::as_int(l->extent) < 1) return fail();
    // If a serial loop over elements contains a reduction loop of its own, promotion at the inner
    // loop is better.
    bool over_places = false;
    for (const For* l : context.loops) {
      if (l->kind != ForKind::kSerial) continue;
      if (over_places && !used(l)) return fail();
      over_places = over_places || used(l);
    }
    std::vector<Expr> conjuncts;
    for (const Expr& e : context.conditions) append_conjuncts(e, conjuncts);
    for (const Expr& e : conjuncts) {
      bool inner = ir::uses_var(e, loop.var);
      bool own = false;
      for (const For* l : context.loops)
        if (ir::uses_var(e, l->var)) (used(l) ? own : inner) = true;
      if (!ir::loads_of(e).empty() || (inner && own)) {
        access.other_guards = true;
      } else if (!inner) {
        access.guards.push_back(e);
      }
    }
    return access;
  }

  // Makes to[loops] = from[indices] if `in`, else the copy back.
  static Stmt copy(const Promotion& p, bool in) {
    ir::VarMap map;
    std::vector<Expr> place;
    std::vector<Var> vars;
    for (const For* l : p.access.loops) {
      vars.emplace_back(l->var.name());
      map[l->var.get()] = vars.back();
      place.push_back(vars.back());
    }
    std::vector<Expr> indices;
    for (const Expr& e : *p.access.indices) indices.push_back(ir::substitute(e, map));
    Stmt s = in ? ir::make_store(p.to, place, ir::load(p.from, indices))
                : ir::make_store(p.from, indices, ir::load(p.to, place));
    for (const Expr& guard : p.access.guards) s = ir::make_if(ir::substitute(guard, map), std::move(s));
    for (size_t l = p.access.loops.size(); l-- > 0;) {
      const bool vectors = p.access.loops[l]->kind == ForKind::kVectorized;
      s = ir::make_for({vars[l], p.access.loops[l]->extent,
                        vectors ? ForKind::kVectorized : ForKind::kUnrolled, ir::ThreadAxis::kNone, 0,
                        std::move(s)});
    }
    return s;
  }

  // Redirects all accesses to the copy.
  Stmt redirect(const Stmt& s, const Promotion& p) {
    std::vector<const For*> loops;
    const std::function<Expr(const Expr&)> redirect_load = [&](const Expr& e) -> Expr {
      const auto* load = ir::as<ir::Load>(e);
      if (load == nullptr || load->buffer != p.from) return e;
      return ir::load(p.to, place_of(load->indices, loops));
    };
    const std::function<Stmt(const Stmt&)> walk = [&](const Stmt& t) -> Stmt {
      if (const auto* store = ir::as<ir::Store>(t)) {
        const Expr value = ir::rewrite(store->value, redirect_load);
        if (store->buffer == p.from) return ir::make_store(p.to, place_of(store->indices, loops), value);
        std::vector<Expr> indices;
        for (const Expr& i : store->indices) indices.push_back(ir::rewrite(i, redirect_load));
        return ir::make_store(store->buffer, std::move(indices), value);
      }
      const auto* loop = ir::as<For>(t);
      if (loop != nullptr) loops.push_back(loop);
      Stmt changed = ir::map_parts(t, walk);
      if (loop != nullptr) loops.pop_back();
      const auto* branch = ir::as<ir::IfThenElse>(changed);
      if (branch == nullptr) return changed;
      return ir::make_if(ir::rewrite(branch->condition, redirect_load), branch->then_body, branch->else_body);
    };
    return walk(s);
  }

  static std::vector<Expr> place_of(const std::vector<Expr>& indices, const std::vector<const For*>& loops) {
    std::vector<Expr> place;
    for (const For* l : loops_used(indices, loops)) place.push_back(l->var);
    return place;
  }

  bool is_output(const Buffer& buffer) const {
    return std::find(program_.outputs.begin(), program_.outputs.end(), buffer) != program_.outputs.end();
  }

  const ir::Program& program_;
  const int64_t registers_;
  const int64_t vector_bytes_;
  const sched::MatrixUnits matrix_;
  ir::VarBounds outer_;                                           // ranges of the surrounding loops
  std::unordered_map<const ir::BufferNode*, bool> fixed_places_;  // small buffers, and whether they
                                                                  // become registers as a whole
};

}  // namespace

ir::Program promote_accumulators(const ir::Program& program, int vector_registers, int vector_bytes,
                                 const sched::MatrixUnits& matrix) {
  ir::Program out = program;
  out.body = Promoter(program, vector_registers, vector_bytes, matrix).rewrite(program.body);
  return out;
}

}  // namespace tensorsmith::codegen
