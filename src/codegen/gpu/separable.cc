#include "codegen/gpu/separable.h"

#include <limits>

#include "ir/analysis.h"
#include "ir/simplify.h"

namespace tensorsmith::codegen {

using ir::Expr;

namespace {

constexpr size_t kNobody = std::numeric_limits<size_t>::max();

std::optional<int64_t> at(const Expr& atom, const ir::Var& var, int64_t value) {
  return ir::as_int(ir::simplify(ir::substitute(atom, {{var.get(), Expr(value)}})));
}

}  // namespace

std::optional<Separable> Separable::of(const Expr& e, const ir::VarBounds& bounds,
                                       const std::vector<ir::Var>& vars) {
  Separable out;
  out.sum_ = ir::linearize(ir::simplify(e, bounds));
  if (out.sum_.bad) return std::nullopt;
  for (const auto& [atom, coefficient] : out.sum_.terms) {
    size_t own = kNobody;
    for (size_t v = 0; v < vars.size(); ++v) {
      if (!ir::uses_var(atom, vars[v])) continue;
      if (own != kNobody) return std::nullopt;
      own = v;
    }
    if (!ir::loads_of(atom).empty()) return std::nullopt;
    out.has_rest_ = out.has_rest_ || own == kNobody;
    out.owners_.push_back(own);
  }
  out.vars_ = vars;
  return out;
}

std::optional<int64_t> Separable::moved(const ir::Var& var, int64_t value) const {
  int64_t total = 0;
  for (size_t t = 0; t < owners_.size(); ++t) {
    if (owners_[t] == kNobody || !(vars_[owners_[t]] == var)) continue;
    const auto& [atom, coefficient] = sum_.terms[t];
    const auto here = at(atom, var, value), zero = at(atom, var, 0);
    if (!here || !zero) return std::nullopt;
    total += coefficient * (*here - *zero);
  }
  return total;
}

}  // namespace tensorsmith::codegen
