#include "feature/access.h"

#include <algorithm>
#include <cstdlib>

namespace tensorsmith::feature {

namespace {

using ir::BinaryOp;

constexpr ValueRange kUnknown = {-kUnknownBound, kUnknownBound};

bool known(const ValueRange& r) { return r.min > -kUnknownBound && r.max < kUnknownBound; }
int64_t clamp(int64_t v) { return std::clamp(v, -kUnknownBound, kUnknownBound); }

int64_t multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? kUnknownBound : -kUnknownBound;
  return clamp(product);
}
ValueRange sum(const ValueRange& a, const ValueRange& b) {
  return {clamp(a.min + b.min), clamp(a.max + b.max)};
}
ValueRange scale(const ValueRange& a, int64_t factor) {
  const int64_t x = multiply(a.min, factor), y = multiply(a.max, factor);
  return {std::min(x, y), std::max(x, y)};
}
int64_t floor_divide(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

ValueRange binary_range(BinaryOp op, const ValueRange& a, const ValueRange& b) {
  switch (op) {
    case BinaryOp::kAdd:
      return sum(a, b);
    case BinaryOp::kSub:
      return sum(a, scale(b, -1));
    case BinaryOp::kMul: {
      if (!known(a) || !known(b)) return kUnknown;
      const ValueRange x = scale(a, b.min), y = scale(a, b.max);
      return {std::min(x.min, y.min), std::max(x.max, y.max)};
    }
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv: {
      if (!known(a) || !known(b) || b.min <= 0) return kUnknown;
      const auto divide = [op](int64_t x, int64_t y) {
        return op == BinaryOp::kDiv ? x / y : floor_divide(x, y);
      };
      return {std::min(divide(a.min, b.min), divide(a.min, b.max)),
              std::max(divide(a.max, b.min), divide(a.max, b.max))};
    }
    case BinaryOp::kFloorMod: {
      if (b.min <= 0 || b.max >= kUnknownBound) return kUnknown;
      // Within one period the remainder keeps the order.
      if (b.min == b.max && known(a) && floor_divide(a.min, b.min) == floor_divide(a.max, b.min)) {
        const int64_t base = floor_divide(a.min, b.min) * b.min;
        return {a.min - base, a.max - base};
      }
      if (a.min >= 0 && a.max < b.min) return a;
      return {0, a.min >= 0 ? std::min(a.max, b.max - 1) : b.max - 1};
    }
    case BinaryOp::kMin:
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case BinaryOp::kMax:
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
      return {0, 1};
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      return kUnknown;
  }
  return kUnknown;
}

}  // namespace

ValueRange range_of(const ir::Expr& e, std::span<const LoopRange> loops, size_t level) {
  return ir::visit(ir::overloaded{
                       [](const ir::IntImm& imm) { return ValueRange{clamp(imm.value), clamp(imm.value)}; },
                       [](const ir::FloatImm&) { return kUnknown; },
                       [&](const ir::VarRef& ref) {
                         for (size_t l = loops.size(); l-- > 0;) {
                           if (loops[l].var == ref.var.get())
                             return ValueRange{0, l < level ? 0 : loops[l].extent - 1};
                         }
                         return kUnknown;
                       },
                       [&](const ir::Unary& unary) {
                         switch (unary.op) {
                           case ir::UnaryOp::kNeg:
                             return scale(range_of(unary.a, loops, level), -1);
                           case ir::UnaryOp::kNot:
                             return ValueRange{0, 1};
                           case ir::UnaryOp::kBitNot:
                             return kUnknown;
                         }
                         return kUnknown;
                       },
                       [&](const ir::Binary& binary) {
                         return binary_range(binary.op, range_of(binary.a, loops, level),
                                             range_of(binary.b, loops, level));
                       },
                       [&](const ir::Select& select) {
                         const ValueRange a = range_of(select.a, loops, level),
                                          b = range_of(select.b, loops, level);
                         return ValueRange{std::min(a.min, b.min), std::max(a.max, b.max)};
                       },
                       [&](const ir::Cast& cast) { return range_of(cast.a, loops, level); },
                       [](const ir::Call&) { return kUnknown; },
                       [](const ir::Load&) { return kUnknown; },
                   },
                   e);
}

void IndexTable::reset(std::span<const LoopRange> loops) {
  loops_ = loops;
  tuples_.clear();
  indices_.clear();
  ranges_.clear();
  coefficients_.clear();
  atoms_.clear();
}

uint64_t IndexTable::loops_in(const ir::Expr& e) const {
  return ir::visit(ir::overloaded{
                       [](const ir::IntImm&) { return uint64_t{0}; },
                       [](const ir::FloatImm&) { return uint64_t{0}; },
                       [&](const ir::VarRef& ref) {
                         for (size_t l = loops_.size(); l-- > 0;) {
                           if (loops_[l].var == ref.var.get()) return uint64_t{1} << l;
                         }
                         return uint64_t{0};
                       },
                       [&](const ir::Unary& unary) { return loops_in(unary.a); },
                       [&](const ir::Binary& binary) { return loops_in(binary.a) | loops_in(binary.b); },
                       [&](const ir::Select& select) {
                         return loops_in(select.condition) | loops_in(select.a) | loops_in(select.b);
                       },
                       [&](const ir::Cast& cast) { return loops_in(cast.a); },
                       [&](const ir::Call& call) {
                         uint64_t used = 0;
                         for (const ir::Expr& arg : call.args) used |= loops_in(arg);
                         return used;
                       },
                       [&](const ir::Load& load) {
                         uint64_t used = 0;
                         for (const ir::Expr& index : load.indices) used |= loops_in(index);
                         return used;
                       },
                   },
                   e);
}

void IndexTable::add_terms(const ir::Expr& e, int64_t factor, size_t index) {
  if (const auto* imm = ir::as<ir::IntImm>(e)) {
    ranges_[index] = sum(ranges_[index], scale({imm->value, imm->value}, factor));
    return;
  }
  if (const auto* ref = ir::as<ir::VarRef>(e)) {
    for (size_t l = loops_.size(); l-- > 0;) {
      if (loops_[l].var != ref->var.get()) continue;
      coefficients_[index * loops_.size() + l] += factor;
      return;
    }
  }
  if (const auto* binary = ir::as<ir::Binary>(e)) {
    if (binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kSub) {
      add_terms(binary->a, factor, index);
      add_terms(binary->b, binary->op == BinaryOp::kAdd ? factor : -factor, index);
      return;
    }
    if (binary->op == BinaryOp::kMul) {
      if (const auto* b = ir::as<ir::IntImm>(binary->b))
        return add_terms(binary->a, multiply(factor, b->value), index);
      if (const auto* a = ir::as<ir::IntImm>(binary->a))
        return add_terms(binary->b, multiply(factor, a->value), index);
    }
  }
  Atom atom{&e, factor, loops_in(e), scale(range_of(e, loops_, loops_.size()), factor)};
  ranges_[index] = sum(ranges_[index], atom.range);
  ++indices_[index].atom_count;
  indices_[index].loops_used |= atom.loops_used;
  atoms_.push_back(atom);
}

size_t IndexTable::add(const std::vector<ir::Expr>& indices, const std::vector<int64_t>& shape) {
  Tuple tuple{indices_.size(), indices.size(), 0};
  for (size_t d = 0; d < indices.size(); ++d) {
    const size_t index = indices_.size();
    indices_.push_back({&indices[d], shape[d], 0, atoms_.size(), 0});
    ranges_.push_back({0, 0});
    coefficients_.resize(coefficients_.size() + loops_.size(), 0);
    add_terms(indices[d], 1, index);
    for (size_t l = 0; l < loops_.size(); ++l) {
      if (coefficients_[index * loops_.size() + l] != 0) indices_[index].loops_used |= uint64_t{1} << l;
    }
    tuple.loops_used |= indices_[index].loops_used;
  }
  tuples_.push_back(tuple);
  return tuples_.size() - 1;
}

void IndexTable::enter_level(size_t level) {
  const uint64_t bit = uint64_t{1} << level;
  for (size_t i = 0; i < indices_.size(); ++i) {
    if ((indices_[i].loops_used & bit) == 0) continue;
    const int64_t reach = multiply(coefficients_[i * loops_.size() + level], loops_[level].extent - 1);
    ValueRange& range = ranges_[i];
    (reach >= 0 ? range.max : range.min) = clamp((reach >= 0 ? range.max : range.min) + reach);
    for (size_t a = 0; a < indices_[i].atom_count; ++a) {
      Atom& atom = atoms_[indices_[i].first_atom + a];
      if ((atom.loops_used & bit) == 0) continue;
      const ValueRange now = scale(range_of(*atom.expr, loops_, level), atom.scale);
      range = {clamp(range.min + now.min - atom.range.min), clamp(range.max + now.max - atom.range.max)};
      atom.range = now;
    }
  }
}

// TVM's approximation where the variable is inside of a division, remainder, minimum or the like: the
// constant factor of a product around it, else 1.
int64_t IndexTable::coefficient_guess(const ir::Expr& e, const ir::VarNode* var) const {
  struct Guess {
    bool seen = false, added = false, multiplied = false;
    int64_t factor = 1;
  } guess;
  const auto walk = [&](auto&& self, const ir::Expr& node) -> void {
    ir::visit(ir::overloaded{
                  [](const ir::IntImm&) {},
                  [](const ir::FloatImm&) {},
                  [&](const ir::VarRef& ref) { guess.seen = guess.seen || ref.var.get() == var; },
                  [&](const ir::Unary& unary) { self(self, unary.a); },
                  [&](const ir::Binary& binary) {
                    self(self, binary.a);
                    self(self, binary.b);
                    if (!guess.seen) return;
                    if (binary.op == BinaryOp::kMul && !guess.added) {
                      const auto a = ir::as_int(binary.a), b = ir::as_int(binary.b);
                      if (a || b) guess.multiplied = true, guess.factor = a ? *a : *b;
                    } else if (binary.op == BinaryOp::kAdd && !guess.multiplied) {
                      guess.added = true;
                      guess.factor = 1;
                    }
                  },
                  [&](const ir::Select& select) {
                    self(self, select.condition);
                    self(self, select.a);
                    self(self, select.b);
                  },
                  [&](const ir::Cast& cast) { self(self, cast.a); },
                  [&](const ir::Call& call) {
                    for (const ir::Expr& arg : call.args) self(self, arg);
                  },
                  [&](const ir::Load& load) {
                    for (const ir::Expr& index : load.indices) self(self, index);
                  },
              },
              node);
  };
  walk(walk, e);
  return guess.factor;
}

int64_t IndexTable::stride(size_t tuple, size_t loop, std::span<const int64_t> strides) const {
  const uint64_t bit = uint64_t{1} << loop;
  if ((tuples_[tuple].loops_used & bit) == 0) return 0;
  for (size_t d = tuples_[tuple].count; d-- > 0;) {
    const size_t i = tuples_[tuple].first + d;
    if ((indices_[i].loops_used & bit) == 0) continue;
    bool in_atom = false;
    for (size_t a = 0; a < indices_[i].atom_count; ++a)
      in_atom = in_atom || (atoms_[indices_[i].first_atom + a].loops_used & bit) != 0;
    const int64_t coefficient = in_atom ? coefficient_guess(*indices_[i].expr, loops_[loop].var)
                                        : coefficients_[i * loops_.size() + loop];
    return std::abs(coefficient) * strides[d];
  }
  return 0;
}

}  // namespace tensorsmith::feature
