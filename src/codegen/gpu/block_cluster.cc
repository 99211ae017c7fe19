#include "codegen/gpu/block_cluster.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/analysis.h"
#include "ir/linear.h"
#include "ir/simplify.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::codegen {

using ir::Expr;
using ir::For;
using ir::Stmt;

namespace {

constexpr int64_t kMostTrials = 1 << 14;

// The loops and conditions around a statement, innermost first.
struct Around {
  std::vector<const For*> loops;
  std::vector<Expr> conditions;  // conditions and loop extents
};

bool find(const Stmt& s, const ir::StmtNode* wanted, Around& out) {
  if (s == nullptr) return false;
  if (s.get() == wanted) return true;
  return ir::visit(
      ir::overloaded{[&](const For& loop) {
                       if (!find(loop.body, wanted, out)) return false;
                       out.loops.push_back(&loop);
                       out.conditions.push_back(loop.extent);
                       return true;
                     },
                     [&](const ir::Store&) { return false; },
                     [&](const ir::IfThenElse& branch) {
                       if (!find(branch.then_body, wanted, out) && !find(branch.else_body, wanted, out))
                         return false;
                       out.conditions.push_back(branch.condition);
                       return true;
                     },
                     [&](const ir::Seq& seq) {
                       return std::any_of(seq.stmts.begin(), seq.stmts.end(),
                                          [&](const Stmt& part) { return find(part, wanted, out); });
                     },
                     [&](const ir::Allocate& a) { return find(a.body, wanted, out); }},
      s);
}

class Trials {
 public:
  Trials(const ir::Var& block, int64_t blocks, std::vector<Expr> places)
      : block_(block), blocks_(blocks), places_(std::move(places)) {}

  bool all_alike(const std::vector<const For*>& loops, size_t next = 0) {
    if (next == loops.size()) return blocks_alike();
    const auto extent = ir::as_int(loops[next]->extent);
    if (!extent) return false;
    for (int64_t v = 0; v < *extent; ++v) {
      values_[loops[next]->var.get()] = Expr(v);
      if (!all_alike(loops, next + 1)) return false;
    }
    return true;
  }

 private:
  bool blocks_alike() {
    for (int64_t b = 0; b < blocks_; b += sched::kClusterBlocks) {
      if (++trials_ > kMostTrials) return false;
      for (const Expr& place : places_) {
        const auto one = at(place, b), other = at(place, b + 1);
        if (!one || one != other) return false;
      }
    }
    return true;
  }
  std::optional<int64_t> at(const Expr& place, int64_t block) {
    values_[block_.get()] = Expr(block);
    return ir::as_int(ir::simplify(ir::substitute(place, values_)));
  }

  ir::Var block_;
  int64_t blocks_;
  std::vector<Expr> places_;
  ir::VarMap values_;
  int64_t trials_ = 0;
};

}  // namespace

bool neighbours_share(const GpuKernel& kernel, const ir::StmtNode* chunks, const TensorBox& box) {
  if (kernel.extents[kBlockX] % sched::kClusterBlocks != 0 || kernel.extents[kBlockY] != 1 ||
      kernel.extents[kBlockZ] != 1)
    return false;
  Around around;
  if (!find(kernel.body, chunks, around)) return false;
  const ir::Var& block = kernel.index[kBlockX];
  for (const Expr& condition : around.conditions)
    if (ir::uses_var(condition, block) || !ir::loads_of(condition).empty()) return false;
  // If the chunk's variable is a separate term of each index, it moves the boxes of all blocks
  // alike and can be set to 0.
  const ir::Var& chunk = std::get<For>(chunks->kind).var;
  std::vector<Expr> places;
  for (const Expr& begin : box.begin) {
    const auto sum = ir::linearize(begin);
    if (sum.bad) return false;
    for (const auto& [atom, coefficient] : sum.terms)
      if (ir::uses_var(atom, chunk) && ir::as<ir::VarRef>(atom) == nullptr) return false;
    places.push_back(ir::substitute(begin, {{chunk.get(), Expr(0)}}));
  }
  return Trials(block, kernel.extents[kBlockX], std::move(places)).all_alike(around.loops);
}

}  // namespace tensorsmith::codegen
