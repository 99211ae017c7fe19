#include "codegen/loop_decisions.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "ir/analysis.h"
#include "ir/parts.h"
#include "ir/structural.h"

namespace tensorsmith::codegen {

using ir::Expr;
using ir::For;
using ir::ForKind;
using ir::Stmt;

namespace {

int64_t times(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return LoopDecisions::kManySteps;
  return std::min(out, LoopDecisions::kManySteps);
}

// A buffer in registers takes at most this many accumulators (vectors or scalars).
constexpr int64_t kMaxRegisterTile = 64;

struct Access {
  const ir::BufferNode* buffer;
  const std::vector<Expr>* indices;
};

void for_each_access(const Stmt& s, const std::function<void(const Access&, bool is_store)>& fn) {
  ir::for_each_stmt(s, [&](const Stmt& inner) {
    const auto loads = [&](const Expr& e) {
      ir::for_each_expr(e, [&](const Expr& x) {
        if (const auto* load = ir::as<ir::Load>(x)) fn({load->buffer.get(), &load->indices}, false);
      });
    };
    ir::for_each_own_expr(inner, loads);
    if (const auto* store = ir::as<ir::Store>(inner)) fn({store->buffer.get(), &store->indices}, true);
  });
}

// Returns the coefficient of v in e if e is linear in v; the other variables may appear in any
// form.
std::optional<int64_t> coefficient(const Expr& e, const ir::Var& v) {
  if (!ir::uses_var(e, v)) return 0;
  if (ir::as<ir::VarRef>(e) != nullptr) return 1;
  const auto* op = ir::as<ir::Binary>(e);
  if (op == nullptr) return std::nullopt;
  const std::optional<int64_t> a = coefficient(op->a, v);
  const std::optional<int64_t> b = coefficient(op->b, v);
  if (!a || !b) return std::nullopt;
  if (op->op == ir::BinaryOp::kAdd) return *a + *b;
  if (op->op == ir::BinaryOp::kSub) return *a - *b;
  if (op->op == ir::BinaryOp::kMul) {
    if (const auto c = ir::as_int(op->b)) return times(*a, *c);
    if (const auto c = ir::as_int(op->a)) return times(*b, *c);
  }
  return std::nullopt;
}

}  // namespace

LoopDecisions::LoopDecisions(const ir::Program& program, int64_t vector_registers)
    : vector_registers_(vector_registers) {
  if (program.body) scan(program.body);
}

int64_t LoopDecisions::scan(const Stmt& s) {
  bool parallel = false;
  const auto child = [&](const Stmt& c) {
    const int64_t n = scan(c);
    parallel = parallel || contains_parallel(c);
    return n;
  };
  const int64_t steps =
      ir::visit(ir::overloaded{[&](const For& loop) {
                                 const int64_t body = child(loop.body);
                                 parallel = parallel || loop.kind == ForKind::kParallel;
                                 const std::optional<int64_t> extent = ir::as_int(loop.extent);
                                 if (loop.kind == ForKind::kVectorized && lanes_are_independent(loop)) {
                                   vectorizable_.insert(s.get());
                                   const int64_t lanes = is_contiguous(loop) ? 16 : 1;
                                   return times(body, extent ? (*extent + lanes - 1) / lanes : kManySteps);
                                 }
                                 return times(body, extent ? *extent : kManySteps);
                               },
                               [&](const ir::Store&) { return int64_t{1}; },
                               [&](const ir::IfThenElse& branch) {
                                 int64_t n = child(branch.then_body);
                                 if (branch.else_body) n += child(branch.else_body);
                                 return std::min(n, kManySteps);
                               },
                               [&](const ir::Seq& seq) {
                                 int64_t n = 0;
                                 for (const Stmt& part : seq.stmts) n = std::min(n + child(part), kManySteps);
                                 return n;
                               },
                               [&](const ir::Allocate& allocate) { return child(allocate.body); }},
                s);
  steps_[s.get()] = steps;
  if (parallel) with_parallel_.insert(s.get());
  if (ir::as<ir::Allocate>(s) != nullptr && !parallel) find_register_loops(s);
  return steps;
}

// Finds the register loops of an allocation. All its accesses must be indexed by loops inside the
// allocation that have constant extents and few iterations altogether.
void LoopDecisions::find_register_loops(const Stmt& s) {
  const auto& allocate = *ir::as<ir::Allocate>(s);
  if (allocate.buffer->allocation_elements() > 8192) return;
  std::vector<const ir::StmtNode*> loops;
  std::vector<const ir::StmtNode*> found;
  int64_t copies = 0;
  bool ok = true;
  std::optional<size_t> across;  // the dimension that vectors run along
  const auto access = [&](const ir::BufferNode* buffer, const std::vector<Expr>& indices) {
    if (buffer != allocate.buffer.get() || !ok) return;
    int64_t product = 1;
    bool serial = false;
    std::vector<const ir::VarNode*> known;
    for (const ir::StmtNode* node : loops) {
      const For& loop = std::get<For>(node->kind);
      known.push_back(loop.var.get());
      if (std::none_of(indices.begin(), indices.end(),
                       [&](const Expr& e) { return ir::uses_var(e, loop.var); }))
        continue;
      const std::optional<int64_t> extent = ir::as_int(loop.extent);
      if (!extent) {
        ok = false;
        return;
      }
      if (loop.kind == ForKind::kVectorized) {
        // If vectors were written along one dimension and read along another, registers would have
        // to be taken apart lane by lane.
        for (size_t d = 0; d < indices.size(); ++d) {
          if (!ir::uses_var(indices[d], loop.var)) continue;
          ok = ok && across.value_or(d) == d;
          across = d;
        }
        continue;
      }
      serial = serial || loop.kind == ForKind::kSerial;
      product = times(product, *extent);
      found.push_back(node);
    }
    copies += product;
    if (product > (serial ? vector_registers_ : kMaxRegisterTile)) ok = false;
    for (const Expr& e : indices) {
      ir::for_each_expr(e, [&](const Expr& x) {
        const auto* ref = ir::as<ir::VarRef>(x);
        if (ref != nullptr && std::find(known.begin(), known.end(), ref->var.get()) == known.end())
          ok = false;
        if (ir::as<ir::Load>(x) != nullptr) ok = false;
      });
    }
  };
  const auto scan_loads = [&](const Expr& e) {
    ir::for_each_expr(e, [&](const Expr& x) {
      if (const auto* load = ir::as<ir::Load>(x)) access(load->buffer.get(), load->indices);
    });
  };
  const std::function<void(const Stmt&)> walk = [&](const Stmt& inner) {
    if (!ok) return;
    ir::for_each_own_expr(inner, scan_loads);
    if (const auto* store = ir::as<ir::Store>(inner)) access(store->buffer.get(), store->indices);
    const bool is_loop = ir::as<For>(inner) != nullptr;
    if (is_loop) loops.push_back(inner.get());
    ir::for_each_part(inner, walk);
    if (is_loop) loops.pop_back();
  };
  walk(allocate.body);
  if (!ok || copies > kMaxUnrolledSteps) return;
  register_loops_.insert(found.begin(), found.end());
  in_registers_.insert(s.get());
}

// Returns whether the lanes of each access are adjacent elements or the same element.
bool LoopDecisions::is_contiguous(const For& loop) {
  bool ok = true;
  for_each_access(loop.body, [&](const Access& a, bool) {
    for (size_t d = 0; d < a.indices->size(); ++d) {
      const std::optional<int64_t> c = coefficient((*a.indices)[d], loop.var);
      ok = ok && c && (*c == 0 || (*c == 1 && d + 1 == a.indices->size()));
    }
  });
  return ok;
}

// A sufficient condition: a buffer that is stored to is loaded only with the same indices, the
// indices of each store depend on the lane (and differ between lanes if the buffer is loaded too),
// and the loops inside do not depend on the lane. Buffers allocated inside have one copy per lane.
bool LoopDecisions::lanes_are_independent(const For& loop) {
  std::unordered_set<const ir::BufferNode*> own;
  bool ok = true;
  ir::for_each_stmt(loop.body, [&](const Stmt& s) {
    if (const auto* allocate = ir::as<ir::Allocate>(s)) own.insert(allocate->buffer.get());
    if (const auto* inner = ir::as<For>(s))
      if (ir::uses_var(inner->extent, loop.var)) ok = false;
  });
  std::vector<Access> stores;
  for_each_access(loop.body, [&](const Access& a, bool is_store) {
    if (!is_store || own.contains(a.buffer)) return;
    stores.push_back(a);
    if (std::none_of(a.indices->begin(), a.indices->end(),
                     [&](const Expr& e) { return ir::uses_var(e, loop.var); }))
      ok = false;
  });
  for_each_access(loop.body, [&](const Access& a, bool is_store) {
    for (const Access& store : stores) {
      if (store.buffer != a.buffer || store.indices == a.indices) continue;
      if (!ir::structural_equal(*store.indices, *a.indices)) ok = false;
      if (!is_store && std::none_of(a.indices->begin(), a.indices->end(),
                                    [&](const Expr& e) { return coefficient(e, loop.var).value_or(0) != 0; }))
        ok = false;
    }
  });
  return ok;
}

}  // namespace tensorsmith::codegen
