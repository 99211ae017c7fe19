#include "ir/bounds.h"

#include <algorithm>
#include <utility>

#include "ir/affine.h"
#include "ir/analysis.h"
#include "ir/linear.h"
#include "ir/simplifier.h"
#include "ir/simplify.h"

namespace tensorsmith::ir {

namespace {

// Most selects, minima and maxima of a sum that are split in one query.
constexpr int kSplitBudget = 8;

}  // namespace

void Simplifier::rollback(const Mark& mark) {
  if (ranges_.size() == mark.ranges && facts_.size() == mark.facts && truths_.size() == mark.truths) return;
  ranges_.resize(mark.ranges);
  facts_.resize(mark.facts);
  truths_.resize(mark.truths);
  forget_results();
}

void Simplifier::bind(const Var& var, Interval range) {
  ranges_.emplace_back(var.get(), range);
  forget_results();
}

Interval Simplifier::range(const Var& var) const {
  for (size_t i = ranges_.size(); i-- > 0;) {
    if (ranges_[i].first == var.get()) return ranges_[i].second;
  }
  const auto it = vars_.find(var.get());
  // An empty range means that the code is unreachable; any enclosure is correct then.
  if (it == vars_.end() || it->second.min > it->second.max) return range_of(var.dtype());
  return it->second;
}

Interval Simplifier::interval_plain(const LinearSum& sum) {
  if (sum.bad) return {};
  Interval out = Interval::point(sum.constant);
  for (const LinearSum::Term& term : sum.terms) {
    out = add(out, multiply(atom_bounds(term.atom), term.coefficient));
    if (out == Interval::everything()) break;
  }
  return out;
}

// Splits a sum with a term min(a, b), max(a, b) or select(c, a, b) into two cases: the sum with a and the
// sum with b in place of the term. In each case, more terms may cancel. With a select, the sum is in the
// union of both intervals. With min or max, it is the smaller or larger one of both sums, which is tighter.
Interval Simplifier::interval_split(const LinearSum& sum, int& budget) {
  const Interval whole = interval_plain(sum);
  if (sum.bad || sum.terms.size() < 2 || budget == 0) return whole;
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Expr& atom = sum.terms[i].atom;
    const Binary* n = as<Binary>(atom);
    const Select* s = as<Select>(atom);
    const bool extremum = n != nullptr && (n->op == BinaryOp::kMin || n->op == BinaryOp::kMax);
    if (!extremum && s == nullptr) continue;
    --budget;
    LinearSum rest = sum;
    rest.terms.erase(rest.terms.begin() + i);
    const int64_t scale = sum.terms[i].coefficient;
    LinearSum with_a = rest;
    accumulate(extremum ? n->a : s->a, scale, with_a);
    LinearSum with_b = std::move(rest);
    accumulate(extremum ? n->b : s->b, scale, with_b);
    const Interval a = interval_split(with_a, budget);
    const Interval b = interval_split(with_b, budget);
    Interval both;
    if (!extremum) {
      both = unite(a, b);
    } else if ((n->op == BinaryOp::kMin) == (scale > 0)) {
      both = {std::min(a.min, b.min), std::min(a.max, b.max)};
    } else {
      both = {std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    return intersect(whole, both);
  }
  return whole;
}

// q + x // c is (c*q + x - x % c) / c with x % c in [0, c). In the numerator, terms may cancel, or
// the sum may be one that a fact is known about.
Interval Simplifier::interval_lifted(const LinearSum& sum, int lifts) {
  Interval out;
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Binary* n = as<Binary>(sum.terms[i].atom);
    const IntImm* imm = n != nullptr && n->op == BinaryOp::kFloorDiv ? as<IntImm>(n->b) : nullptr;
    if (imm == nullptr || imm->value <= 0) continue;
    const int64_t divisor = imm->value;
    const int64_t scale = sum.terms[i].coefficient;
    LinearSum rest = sum;
    rest.terms.erase(rest.terms.begin() + i);
    LinearSum lifted;
    lifted.add(rest, divisor);
    accumulate(n->a, scale, lifted);
    if (lifted.bad) continue;
    // divisor * sum = lifted - scale * (x % divisor)
    Interval r = interval(lifted, lifts - 1);
    r = add(r, multiply(Interval{0, divisor - 1}, multiply(Interval::point(scale), -1)));
    const Interval down = floor_div(r, divisor);
    // The lower bound is rounded up.
    const Interval up = r.min == Interval::kNegInf ? r : multiply(floor_div(multiply(r, -1), divisor), -1);
    out = intersect(out, {r.min == Interval::kNegInf ? r.min : up.min, down.max});
    break;
  }
  return out;
}

Interval Simplifier::interval(const LinearSum& sum, int lifts) {
  int budget = kSplitBudget;
  Interval out = interval_split(sum, budget);
  if (lifts > 0 && (sum.terms.size() > 1 || !facts_.empty()) && !sum.bad && out.min != out.max)
    out = intersect(out, interval_lifted(sum, lifts));
  if (sum.bad || sum.terms.empty() || without_facts_ || facts_.empty()) return out;
  without_facts_ = true;
  for (const LinearSum& fact : facts_) {
    // sum = scale * fact + rest, where the scale is chosen so that some term cancels. Facts without
    // a common term are of no use.
    int64_t last_scale = 0;
    for (const LinearSum::Term& term : fact.terms) {
      const int64_t own = sum.coefficient_of(term.atom);
      if (own == 0 || own == INT64_MIN || own % term.coefficient != 0) continue;
      const int64_t scale = own / term.coefficient;
      if (scale == last_scale || scale == INT64_MIN) continue;
      last_scale = scale;
      LinearSum rest = sum;
      rest.add(fact, -scale);
      const Interval r = interval_plain(rest);
      // A fact is negative: scale * fact is at most -scale if scale > 0, and at least -scale otherwise.
      int64_t limit = 0;
      if (scale > 0) {
        if (r.max != Interval::kPosInf && !__builtin_sub_overflow(r.max, scale, &limit))
          out.max = std::min(out.max, limit);
      } else if (r.min != Interval::kNegInf && !__builtin_sub_overflow(r.min, scale, &limit)) {
        out.min = std::max(out.min, limit);
      }
    }
  }
  without_facts_ = false;
  return out;
}

Interval Simplifier::atom_bounds(const Expr& atom) {
  if (const VarRef* ref = as<VarRef>(atom)) return range(ref->var);
  if (const IntImm* imm = as<IntImm>(atom); imm != nullptr && atom.dtype() != DType::kU64)
    return Interval::point(imm->value);
  BoundsMemo& memo = memo_[without_facts_ ? 1 : 0];
  const auto it = memo.find(atom.get());
  if (it != memo.end()) return it->second.second;
  const Interval out = compute_bounds(atom);
  memo.emplace(atom.get(), std::pair(atom, out));
  return out;
}

// Returns the bounds of an expression as it is written: sums in it are taken apart (linearize), but nothing
// is simplified.
Interval Simplifier::compute_bounds(const Expr& e) {
  const Interval all = range_of(e.dtype());
  return visit(overloaded{
                   [&](const IntImm& n) {
                     return e.dtype() == DType::kU64 && n.value < 0 ? all : Interval::point(n.value);
                   },
                   [&](const FloatImm&) { return all; },
                   [&](const VarRef& n) { return range(n.var); },
                   [&](const Unary& n) {
                     if (n.op == UnaryOp::kNot) {
                       const Interval a = atom_bounds(n.a);
                       return Interval{1 - a.max, 1 - a.min};
                     }
                     if (e.dtype() == DType::kU64) return all;
                     Interval a = e.dtype() == DType::kI64 ? interval(linearize(n.a)) : atom_bounds(n.a);
                     a = multiply(a, -1);
                     if (n.op == UnaryOp::kBitNot) a = add(a, Interval::point(-1));
                     return within(a, all) ? a : all;
                   },
                   [&](const Binary& n) { return binary_bounds(e, n); },
                   [&](const Select& n) { return unite(atom_bounds(n.a), atom_bounds(n.b)); },
                   [&](const Cast& n) {
                     if (is_float(n.a.dtype()) || e.dtype() == DType::kU64 || n.a.dtype() == DType::kU64)
                       return all;
                     const Interval a = atom_bounds(n.a);
                     if (e.dtype() == DType::kBool) {
                       if (a.min > 0 || a.max < 0) return Interval::point(1);
                       return a == Interval::point(0) ? a : all;
                     }
                     return within(a, all) ? a : all;
                   },
                   [&](const Call& n) {
                     if (n.intrinsic == Intrinsic::kSign && is_int(e.dtype()))
                       return Interval{all.min < 0 ? -1 : 0, 1};
                     return all;
                   },
                   [&](const Load&) { return all; },
               },
               e);
}

Interval Simplifier::binary_bounds(const Expr& e, const Binary& n) {
  const Interval all = range_of(e.dtype());
  if (is_comparison(n.op) || n.op == BinaryOp::kAnd || n.op == BinaryOp::kOr) return {0, 1};
  if (is_float(e.dtype()) || e.dtype() == DType::kU64) return all;
  if (e.dtype() == DType::kI64 &&
      (n.op == BinaryOp::kAdd || n.op == BinaryOp::kSub ||
       (n.op == BinaryOp::kMul && (as<IntImm>(n.a) != nullptr || as<IntImm>(n.b) != nullptr))))
    return interval(linearize(e));
  const auto of = [&](const Expr& x) {
    return x.dtype() == DType::kI64 ? interval(linearize(x)) : atom_bounds(x);
  };
  const Interval a = of(n.a);
  const Interval b = of(n.b);
  Interval out = all;
  switch (n.op) {
    case BinaryOp::kAdd:
      out = add(a, b);
      break;
    case BinaryOp::kSub:
      out = add(a, multiply(b, -1));
      break;
    case BinaryOp::kMul:
      out = multiply(a, b);
      break;
    case BinaryOp::kFloorDiv:
      if (b.min == b.max && b.min > 0) {
        out = floor_div(a, b.min);
      } else if (b.min > 0 && a.min >= 0) {
        out = {0, a.max};
      }
      break;
    case BinaryOp::kDiv:
      if (b.min > 0) {
        if (a.min >= 0) {
          out = b.min == b.max ? floor_div(a, b.min) : Interval{0, a.max};
        } else if (a.bounded()) {
          out = {a.min, std::max<int64_t>(a.max, 0)};
        }
      }
      break;
    case BinaryOp::kFloorMod:
      if (b.min > 0) {
        // Within one period, the remainder increases with the numerator.
        if (b.min == b.max && a.bounded() && floor_div(a.min, b.min) == floor_div(a.max, b.min)) {
          out = {floor_mod(a.min, b.min), floor_mod(a.max, b.min)};
        } else {
          out = {0, b.max == Interval::kPosInf ? b.max : b.max - 1};
          if (a.min >= 0) out.max = std::min(out.max, a.max);
        }
      }
      break;
    case BinaryOp::kMin:
      out = {std::min(a.min, b.min), std::min(a.max, b.max)};
      break;
    case BinaryOp::kMax:
      out = {std::max(a.min, b.min), std::max(a.max, b.max)};
      break;
    case BinaryOp::kBitAnd:
      if (b.min >= 0) {
        out = {0, b.max};
      } else if (a.min >= 0) {
        out = {0, a.max};
      }
      break;
    case BinaryOp::kShr:
      if (b.min >= 0 && a.min >= 0) out = {0, a.max};
      break;
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShl:
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
      break;
  }
  return within(out, all) ? out : all;
}

void Simplifier::assume_negative(const LinearSum& d, int budget) {
  if (d.bad || d.terms.empty()) return;
  // x < min(a, b) is x < a and x < b; max(a, b) < x likewise.
  for (size_t i = 0; i < d.terms.size() && budget > 0; ++i) {
    const Binary* n = as<Binary>(d.terms[i].atom);
    const int64_t scale = d.terms[i].coefficient;
    if (n == nullptr || n->op != (scale < 0 ? BinaryOp::kMin : BinaryOp::kMax)) continue;
    for (const Expr& side : {n->a, n->b}) {
      LinearSum one = d;
      one.terms.erase(one.terms.begin() + i);
      accumulate(side, scale, one);
      assume_negative(one, budget - 1);
    }
    break;
  }
  facts_.push_back(d);
  forget_results();
  for (const LinearSum::Term& term : d.terms) {
    const VarRef* ref = as<VarRef>(term.atom);
    if (ref == nullptr) continue;
    // coefficient * var < -rest
    LinearSum rest = d;
    rest.add_term(term.atom, -term.coefficient);
    const Interval others = interval_plain(rest);
    if (others.min == Interval::kNegInf || others.min == INT64_MAX) continue;
    const int64_t limit = -(others.min + 1);  // coefficient * var <= limit
    Interval refined = range(ref->var);
    const Interval old = refined;
    if (term.coefficient > 0) {
      refined.max = std::min(refined.max, floor_div(limit, term.coefficient));
    } else if (term.coefficient != INT64_MIN && limit != INT64_MIN) {
      refined.min = std::max(refined.min, -floor_div(limit, -term.coefficient));
    }
    if (refined == old || refined.min > refined.max) continue;
    bind(ref->var, refined);
  }
}

void Simplifier::assume(const Expr& condition, bool truth) {
  if (as<IntImm>(condition) != nullptr) return;
  if (const Unary* n = as<Unary>(condition); n != nullptr && n->op == UnaryOp::kNot)
    return assume(n->a, !truth);
  if (const Binary* n = as<Binary>(condition)) {
    if (n->op == (truth ? BinaryOp::kAnd : BinaryOp::kOr)) {
      assume(n->a, truth);
      return assume(n->b, truth);
    }
    if (is_comparison(n->op) && n->a.dtype() == DType::kI64) {
      LinearSum d = linearize(n->a);
      accumulate(n->b, -1, d);
      LinearSum opposite;
      opposite.add(d, -1);
      const BinaryOp op = truth ? n->op : inverse_of(n->op);
      if (op == BinaryOp::kLe || op == BinaryOp::kEq) d.add_constant(-1);
      if (op == BinaryOp::kGe || op == BinaryOp::kEq) opposite.add_constant(-1);
      if (op == BinaryOp::kLt || op == BinaryOp::kLe || op == BinaryOp::kEq) assume_negative(d);
      if (op == BinaryOp::kGt || op == BinaryOp::kGe || op == BinaryOp::kEq) assume_negative(opposite);
      if (op != BinaryOp::kNe && op != BinaryOp::kEq) return;
    }
  }
  truths_.emplace_back(condition, truth);
  simple_.clear();
}

void Simplifier::assume_during(const Stmt& body, const Expr& condition, bool truth) {
  if (body == nullptr) return;
  if (const Binary* n = as<Binary>(condition);
      n != nullptr && n->op == (truth ? BinaryOp::kAnd : BinaryOp::kOr)) {
    assume_during(body, n->a, truth);
    return assume_during(body, n->b, truth);
  }
  const std::vector<const Load*> loads = loads_of(condition);
  bool written = false;
  if (!loads.empty()) {
    for_each_stmt(body, [&](const Stmt& s) {
      const Store* store = as<Store>(s);
      for (const Load* l : loads) written = written || (store != nullptr && store->buffer == l->buffer);
    });
  }
  if (!written) assume(condition, truth);
}

Interval Simplifier::bounds(const Expr& e) {
  const Expr simple = simplify(e);
  if (simple.dtype() != DType::kI64) return compute_bounds(simple);
  const Interval out = interval(linearize(simple));
  if (simple.same_as(e)) return out;
  // Simplification may split sums that a fact is about; the unsimplified form may have better
  // bounds.
  return intersect(out, interval(linearize(e)));
}

Interval bounds_of(const Expr& e, const VarBounds& vars) {
  TS_CHECK(!is_float(e.dtype()), "bounds of a float expression");
  return Simplifier(vars).bounds(e);
}

namespace {

std::optional<AffineSum<Var>> sum_of_variables(const LinearSum& sum) {
  if (sum.bad) return std::nullopt;
  AffineSum<Var> out(sum.constant);
  for (const LinearSum::Term& term : sum.terms) {
    const VarRef* ref = as<VarRef>(term.atom);
    if (ref == nullptr) return std::nullopt;
    out.terms.push_back({ref->var, term.coefficient});
  }
  return out;
}

}  // namespace

std::optional<AffineSum<Var>> as_affine(const Expr& e) {
  if (!e.defined() || e.dtype() != DType::kI64) return std::nullopt;
  if (auto direct = sum_of_variables(linearize(e))) return direct;
  return sum_of_variables(linearize(simplify(e)));
}

}  // namespace tensorsmith::ir
