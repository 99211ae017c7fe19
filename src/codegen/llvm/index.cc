// Index arithmetic: affine forms with ranges, and their placement in the loop nest.
#include <algorithm>
#include <utility>

#include "codegen/llvm/index_emitter.h"
#include "ir/affine.h"
#include "ir/affine_visitor.h"
#include "ir/analysis.h"
#include "ir/linear.h"

namespace tensorsmith::codegen {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::Interval;
using llvm::Value;

namespace {

// Ranges are only trusted while they stay far from overflow.
bool near(const Interval& r) { return r.min > -ir::kIndexLimit && r.max < ir::kIndexLimit; }

Affine affine_of(const Atom* atom) {
  Affine a;
  a.terms.push_back({atom, 1});
  return a;
}

int depth_of(const Affine& a) {
  int depth = a.uniform() ? 0 : kHere;
  for (const auto& [atom, coefficient] : a.terms) depth = std::max(depth, atom->depth);
  return depth;
}

std::vector<int64_t> key_of(int64_t tag, const Affine& a, int max_depth) {
  std::vector<int64_t> key{tag};
  for (const auto& [atom, coefficient] : a.terms) {
    if (atom->depth > max_depth) continue;
    key.push_back(atom->id);
    key.push_back(coefficient);
  }
  return key;
}

}  // namespace

// Ranks atoms by id; the lane number is the last atom, represented by null.
class IndexEmitter::Rules : public ir::AffineRules<Rules, Affine> {
 public:
  explicit Rules(IndexEmitter& emitter) : emitter_(emitter) {}
  using AffineRules::merge;

  static Affine start(int64_t constant) { return Affine::of(constant); }
  static void push(Affine& a, const Atom* atom, int64_t coefficient) {
    if (atom == nullptr) {
      a.lane = coefficient;
    } else {
      a.terms.push_back({atom, coefficient});
    }
  }
  static size_t count(const Affine& a) { return a.terms.size() + (a.lane != 0 ? 1 : 0); }
  static Affine::Term term(const Affine& a, size_t i) {
    return i < a.terms.size() ? a.terms[i] : Affine::Term{nullptr, a.lane};
  }
  static bool before(const Atom* x, const Atom* y) { return x != nullptr && (y == nullptr || x->id < y->id); }
  static int64_t multiply_add(int64_t a, int64_t b, int64_t factor) {
    return ir::wrapping_multiply_add(a, b, factor);
  }
  Interval range(const Affine& a) const { return emitter_.range_of(a); }
  Affine add(const Affine& a, const Affine& b, int64_t factor = 1) { return emitter_.sum(a, b, factor); }
  // The code of an atom has been emitted already, so its operands are of no use.
  static ir::AffineDivision division(const Atom*) { return {}; }
  static Affine dividend(const Atom*) { return {}; }
  Affine divided(ir::AffineKind kind, const Affine& rest, int64_t divisor, const Interval& values) {
    return rest.uniform() ? emitter_.divided_atom(rest, divisor, kind == ir::AffineKind::kFloorMod)
                          : emitter_.divided_lanes(rest, divisor, values);
  }

 private:
  IndexEmitter& emitter_;
};

class IndexEmitter::Reader : public ir::AffineVisitor<Reader, Affine> {
 public:
  explicit Reader(IndexEmitter& emitter) : emitter_(emitter) {}

  Reader& algebra() { return *this; }
  Affine add(const Affine& a, const Affine& b, int64_t factor) { return emitter_.sum(a, b, factor); }
  Affine scale(const Affine& a, int64_t factor) { return emitter_.sum(Affine(), a, factor); }
  Affine floordiv(const Affine& a, int64_t divisor) { return emitter_.floor_div(a, divisor); }
  Affine floormod(const Affine& a, int64_t divisor) { return emitter_.floor_mod(a, divisor); }

  static bool left_first(BinaryOp op) { return op == BinaryOp::kMin || op == BinaryOp::kMax; }
  Affine operand(const Expr& e) { return emitter_.index(e); }
  static Affine literal(int64_t value, const Expr&) { return Affine::of(value); }
  Affine variable(const ir::VarRef& n, const Expr&) { return emitter_.value_of(n.var); }
  static std::optional<int64_t> constant_of(const Affine& a) {
    return a.is_constant() ? std::optional(a.constant) : std::nullopt;
  }
  bool never_negative(const Affine& a) const {
    const Interval range = emitter_.range_of(a);
    return near(range) && range.min >= 0;
  }
  Affine extremum(BinaryOp op, const Affine& a, const Affine& b, const Expr& e) {
    const Interval difference = emitter_.range_of(add(a, b, -1));
    const bool is_min = op == BinaryOp::kMin;
    if (near(difference) && difference.max <= 0) return is_min ? a : b;
    if (near(difference) && difference.min >= 0) return is_min ? b : a;
    return emitter_.extremum(e, op, a, b);
  }
  Affine select(const ir::Select& n, const Expr& e) {
    if (const auto* c = llvm::dyn_cast<llvm::ConstantInt>(emitter_.evaluate_(n.condition).value))
      return operand(c->isZero() ? n.b : n.a);
    return other(e);
  }
  // The range of an i64 that was converted from a narrower integer is that of the narrower type.
  Affine cast(const ir::Cast& n, const Expr& e) {
    return ir::is_int(n.a.dtype()) && n.a.dtype() != DType::kU64 ? operand(n.a) : other(e);
  }
  Affine other(const Expr& e) { return emitter_.opaque(e); }

 private:
  IndexEmitter& emitter_;
};

const Affine* IndexEmitter::find(const ir::Var& var) const {
  const auto it = nest_.vars.find(var.get());
  return it == nest_.vars.end() ? nullptr : &it->second;
}

const Affine& IndexEmitter::value_of(const ir::Var& var) const {
  const Affine* value = find(var);
  TS_CHECK(value != nullptr, "variable '" + var.name() + "' is used outside of its loop");
  return *value;
}

void IndexEmitter::open_scope(llvm::Instruction* insert_before) {
  nest_.scopes.emplace_back().insert_before = insert_before;
}

Affine IndexEmitter::defined_in_scope(Value* v, Interval range) {
  const Atom* variable = new_atom(v, static_cast<int>(nest_.scopes.size()) - 1, range);
  nest_.scopes.back().variable = variable;
  return affine_of(variable);
}

const Atom* IndexEmitter::new_atom(Value* v, int depth, Interval range) {
  atoms_.push_back({.value = v, .depth = depth, .id = static_cast<int>(atoms_.size()), .range = range});
  return &atoms_.back();
}

// Records that `made` is floor(of / divisor), or the remainder of that division.
void IndexEmitter::note_digit(Atom& made, const Atom* of, int64_t divisor, bool modulo) {
  if (of->modulus > 0 && of->modulus % divisor != 0) return;
  made.whole = of->whole == nullptr ? of : of->whole;
  made.divisor = modulo ? of->divisor : of->divisor * divisor;
  made.modulus = modulo ? divisor : of->modulus / divisor;
}

Affine IndexEmitter::atom_here(Value* v, Interval range) {
  Affine a;
  if (v->getType()->isVectorTy()) {
    a.vector = v;
    return a;
  }
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(v)) {
    a.constant = c->getSExtValue();
    return a;
  }
  return affine_of(new_atom(v, kHere, range));
}

Affine IndexEmitter::sum(const Affine& a, const Affine& b, int64_t scale) {
  Affine r = Rules(*this).merge(a, b, scale);
  Value* v = b.vector;
  if (v != nullptr && scale != 1) v = b_.CreateMul(v, llvm::ConstantInt::get(v->getType(), scale));
  r.vector = a.vector == nullptr ? v : v == nullptr ? a.vector : b_.CreateAdd(a.vector, v);
  return r;
}

Interval IndexEmitter::range_of(const Affine& a) const {
  if (a.vector != nullptr) return Interval::everything();
  ir::RangeSum sum(a.constant);
  for (const auto& [atom, coefficient] : a.terms) sum.add(atom->range, coefficient);
  sum.add({0, context_.lanes - 1}, a.lane);
  const Interval r = sum.result();
  return r.bounded() ? r : Interval::everything();
}

// Returns the deepest scope that the expression depends on; kHere if it differs between lanes or
// reads memory.
int IndexEmitter::depth_needed_by(const Expr& e) const {
  int depth = 0;
  ir::for_each_expr(e, [&](const Expr& x) {
    if (ir::as<ir::Load>(x) != nullptr) depth = kHere;
    if (const auto* ref = ir::as<ir::VarRef>(x)) depth = std::max(depth, depth_of(value_of(ref->var)));
  });
  return depth;
}

Affine IndexEmitter::index(const Expr& e) {
  if (e.dtype() != DType::kI64) return opaque(e);
  if (const Affine* known = context_.evaluated.indices.find(e)) return *known;
  Affine a = Reader(*this).evaluate(e);
  context_.evaluated.indices.remember(e, a);
  return a;
}

// Makes the value a single atom, computed in the outermost scope that defines its operands.
Affine IndexEmitter::opaque(const Expr& e) {
  const DType dtype = e.dtype();
  Interval range = ir::range_of(dtype);
  if (const auto* op = ir::as<ir::Binary>(e);
      op != nullptr && dtype == DType::kI64 && (op->op == BinaryOp::kMin || op->op == BinaryOp::kMax)) {
    const Interval x = range_of(index(op->a));
    const Interval y = range_of(index(op->b));
    range = op->op == BinaryOp::kMin ? Interval{std::min(x.min, y.min), std::min(x.max, y.max)}
                                     : Interval{std::max(x.min, y.min), std::max(x.max, y.max)};
    if (!near(range)) range = Interval::everything();
  }
  const auto widen = [&](Value* v) {
    return dtype == DType::kI64 ? v : values_.convert(dtype, DType::kI64, v);
  };
  const int depth = depth_needed_by(e);
  if (depth == kHere) {
    const Val v = evaluate_(e);
    return atom_here(widen(v.value), range);
  }
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(scope(depth).insert_before);
  // Values that were evaluated at the insertion point are not defined in that scope.
  Evaluated here = std::exchange(context_.evaluated, {});
  Value* v = widen(evaluate_(e).value);
  context_.evaluated = std::move(here);
  Affine a;
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(v)) {
    a.constant = c->getSExtValue();
    return a;
  }
  return affine_of(new_atom(v, depth, range));
}

// Makes the minimum or maximum of two values one atom, which all its occurrences share.
Affine IndexEmitter::extremum(const Expr& e, BinaryOp op, const Affine& a, const Affine& b) {
  const int depth = std::max(depth_of(a), depth_of(b));
  if (depth == kHere) return opaque(e);
  std::vector<int64_t> key = key_of(op == BinaryOp::kMin ? -4 : -5, a, depth);
  key.push_back(a.constant);
  const std::vector<int64_t> other = key_of(-6, b, depth);
  key.insert(key.end(), other.begin(), other.end());
  key.push_back(b.constant);
  auto& known = scope(depth).atoms;
  if (const auto it = known.find(key); it != known.end()) return affine_of(it->second);
  const Affine made = opaque(e);
  if (!made.is_constant() && made.terms.front().atom->depth == depth) known[key] = made.terms.front().atom;
  return made;
}

// Returns floor(a / d) or a - d * floor(a / d) of a uniform value that affine rules cannot divide.
Affine IndexEmitter::divided_atom(const Affine& a, int64_t divisor, bool modulo) {
  const int depth = depth_of(a);
  std::vector<int64_t> key;
  if (depth != kHere) {
    key = key_of(modulo ? -1 : -2, a, kHere);
    key.push_back(a.constant);
    key.push_back(divisor);
    const auto& known = scope(depth).atoms;
    if (const auto it = known.find(key); it != known.end()) return affine_of(it->second);
  }
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  if (depth != kHere) b_.SetInsertPoint(scope(depth).insert_before);
  const Interval range = range_of(a);
  Value* x = uniform_sum(a);
  Value* d = b_.getInt64(divisor);
  Value* v = nullptr;
  if (near(range) && range.min >= 0) {
    // A 32-bit division is used where it suffices, since the multiplications that implement it are
    // cheaper.
    const bool narrow = range.max <= INT32_MAX && divisor <= INT32_MAX;
    if (narrow) {
      x = b_.CreateTrunc(x, b_.getInt32Ty());
      d = b_.getInt32(divisor);
    }
    v = modulo ? b_.CreateURem(x, d) : b_.CreateUDiv(x, d);
    if (narrow) v = b_.CreateZExt(v, b_.getInt64Ty());
  } else {
    v = values_.integer_division(modulo ? BinaryOp::kFloorMod : BinaryOp::kFloorDiv, true, x, d);
  }
  Interval result = Interval::everything();
  if (modulo) {
    result = {0, divisor - 1};
  } else if (near(range)) {
    result = {tensorsmith::floor_div(range.min, divisor), tensorsmith::floor_div(range.max, divisor)};
  }
  const Atom* atom = new_atom(v, depth, result);
  if (a.constant == 0 && a.terms.size() == 1 && a.terms[0].coefficient == 1)
    note_digit(atoms_.back(), a.terms[0].atom, divisor, modulo);
  if (depth != kHere) scope(depth).atoms[key] = atom;
  return affine_of(atom);
}

Affine IndexEmitter::floor_div(const Affine& a, int64_t d) {
  if (d == 1) return a;
  if (a.vector != nullptr) {
    const Val v = materialize(a);
    return atom_here(values_.integer_division(BinaryOp::kFloorDiv, true, v.value,
                                              llvm::ConstantInt::get(v.value->getType(), d)),
                     Interval::everything());
  }
  // The rules are sound only while nothing overflows.
  if (!near(range_of(a)) && !a.is_constant())
    return a.uniform() ? divided_atom(a, d, false)
                       : atom_here(values_.integer_division(
                                       BinaryOp::kFloorDiv, true, materialize(a).value,
                                       llvm::ConstantInt::get(values_.with_lanes(b_.getInt64Ty()), d)),
                                   Interval::everything());
  return Rules(*this).floordiv(a, d);
}

// Returns floor(a / d) of a value that differs between lanes.
Affine IndexEmitter::divided_lanes(const Affine& a, int64_t d, const Interval& values) {
  Value* v = materialize(a).value;
  const bool narrow = values.min > INT32_MIN && values.max < INT32_MAX && d < INT32_MAX;
  if (narrow) v = b_.CreateTrunc(v, values_.with_lanes(b_.getInt32Ty()));
  Value* divisor = llvm::ConstantInt::get(v->getType(), d);
  v = values.min >= 0 ? b_.CreateUDiv(v, divisor)
                      : values_.integer_division(BinaryOp::kFloorDiv, true, v, divisor);
  if (narrow) v = b_.CreateSExt(v, values_.with_lanes(b_.getInt64Ty()));
  return atom_here(v, Interval::everything());
}

Affine IndexEmitter::floor_mod(const Affine& a, int64_t d) {
  if (d == 1) return {};
  const Interval range = range_of(a);
  if (near(range) && range.min >= 0 && range.max < d) return a;
  if (a.uniform() && !a.is_constant()) {
    return near(range) ? Rules(*this).floormod(a, d) : divided_atom(a, d, true);
  }
  return sum(a, floor_div(a, d), -d);
}

Value* IndexEmitter::multiple(const Atom* atom, int64_t factor) {
  if (factor == 1) return atom->value;
  Value* product = b_.CreateMul(atom->value, b_.getInt64(factor));
  // Addressing modes scale by two without a separate multiple.
  if (atom->depth != kHere && factor != 2) scope(atom->depth).multiples.emplace_back(product, factor);
  return product;
}

void IndexEmitter::add_up_multiples(llvm::PHINode* variable, llvm::BasicBlock* before, Value* begin) {
  for (const auto& [product, factor] : nest_.scopes.back().multiples) {
    auto* multiplication = llvm::dyn_cast<llvm::BinaryOperator>(product);
    if (multiplication == nullptr || multiplication->getOperand(0) != variable) continue;
    llvm::Constant* step = b_.getInt64(factor);
    auto* sum = llvm::PHINode::Create(b_.getInt64Ty(), 2, "", variable->getParent()->begin());
    const auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
    if (first != nullptr && first->isZero()) {
      sum->addIncoming(b_.getInt64(0), before);
    } else {
      llvm::IRBuilderBase::InsertPointGuard guard(b_);
      b_.SetInsertPoint(before->getTerminator());
      sum->addIncoming(b_.CreateMul(begin, step), before);
    }
    sum->addIncoming(b_.CreateAdd(sum, step), b_.GetInsertBlock());
    multiplication->replaceAllUsesWith(sum);
  }
}

Affine IndexEmitter::value_of(const Digit& digit) {
  const Affine shifted = floor_div(affine_of(digit.variable), digit.divisor);
  return digit.leading ? shifted : floor_mod(shifted, digit.extent);
}

std::optional<IndexEmitter::ReadNest> IndexEmitter::nest_of(const Affine& element) const {
  ReadNest nest;
  auto& [digits, loops, first] = nest;
  first = nest_.scopes.size();
  while (first > 1) {
    const Atom* variable = nest_.scopes[first - 1].variable;
    if (variable == nullptr || !variable->range.bounded()) break;
    --first;
  }
  for (size_t depth = first; depth < nest_.scopes.size(); ++depth) {
    const Atom* variable = nest_.scopes[depth].variable;
    const int64_t extent = variable->range.max + 1;
    std::vector<int64_t> cuts{1};
    for (const auto& [atom, coefficient] : element.terms) {
      if (atom->depth != static_cast<int>(depth) || atom == variable) continue;
      if (atom->whole != variable) return std::nullopt;
      cuts.push_back(atom->divisor);
      if (atom->modulus > 0) cuts.push_back(atom->divisor * atom->modulus);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    while (cuts.size() > 1 && cuts.back() >= extent) cuts.pop_back();
    for (size_t i = cuts.size(); i-- > 0;) {
      const bool leading = i + 1 == cuts.size();
      if (!leading && cuts[i + 1] % cuts[i] != 0) return std::nullopt;
      digits.push_back(
          {variable, cuts[i], leading ? (extent + cuts[i] - 1) / cuts[i] : cuts[i + 1] / cuts[i], leading});
      loops.push_back({digits.back().extent, 0});
    }
  }
  for (const auto& [atom, coefficient] : element.terms) {
    if (atom->depth >= static_cast<int>(nest_.scopes.size())) return std::nullopt;
    const bool part = atom->whole != nullptr;
    for (size_t i = 0; i < digits.size(); ++i) {
      const Digit& digit = digits[i];
      if (digit.variable != (part ? atom->whole : atom) || digit.divisor < atom->divisor) continue;
      if (atom->modulus > 0 && digit.divisor >= atom->divisor * atom->modulus) continue;
      loops[i].coefficient += coefficient * (digit.divisor / atom->divisor);
    }
  }
  return nest;
}

std::optional<int64_t> IndexEmitter::next_tile(const Affine& element, int64_t stride) const {
  const auto nest = nest_of(element);
  return nest ? codegen::next_tile(nest->loops, stride) : std::nullopt;
}

std::optional<IndexEmitter::Fetch> IndexEmitter::next_block(const Affine& element, const StepReads& step) {
  auto nest = nest_of(element);
  if (!nest) return std::nullopt;
  auto& [digits, loops, first] = *nest;
  // Around a loop of varying extent, the first iteration may be the one with all steps, so it
  // fetches for all iterations.
  bool varying = false;
  for (size_t i = digits.size(); i-- > 0;) {
    if (varying && loops[i].coefficient == 0) loops[i].extent = 1;
    varying = varying || nest_.scopes[digits[i].variable->depth].varying_extent;
  }
  const auto next = codegen::next_block(loops, step);
  if (!next) return std::nullopt;
  Fetch fetch;
  fetch.elements = next->elements;
  fetch.block = next->block;
  fetch.element.constant = element.constant + next->block;
  for (const auto& [atom, coefficient] : element.terms)
    if (atom->depth < static_cast<int>(first)) fetch.element.terms.push_back({atom, coefficient});
  const auto inside = static_cast<size_t>(next->depth) + 1;
  for (size_t i = 0; i < digits.size(); ++i) {
    const int64_t factor = i < inside ? loops[i].coefficient : next->offsets[i - inside];
    if (factor != 0) fetch.element = sum(fetch.element, value_of(digits[i]), factor);
  }
  return fetch;
}

// Returns the uniform part (without lanes) as a scalar. Partial sums are placed in the scope of
// their deepest term.
Value* IndexEmitter::uniform_sum(const Affine& a) {
  Affine u;
  u.constant = a.constant;
  u.terms = a.terms;
  if (u.terms.empty()) return b_.getInt64(u.constant);
  const int deepest = depth_of(u);
  llvm::SmallVector<int, 4> depths;
  for (const auto& [atom, coefficient] : u.terms) depths.push_back(atom->depth);
  std::sort(depths.begin(), depths.end());
  depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
  Value* total = nullptr;
  for (const int depth : depths) {
    const auto emit_level = [&] {
      for (const auto& [atom, coefficient] : u.terms) {
        if (atom->depth != depth) continue;
        Value* term = multiple(atom, coefficient);
        total = total == nullptr ? term : b_.CreateAdd(total, term);
      }
      if (depth == deepest && u.constant != 0) total = b_.CreateAdd(total, b_.getInt64(u.constant));
    };
    if (depth == kHere) {
      emit_level();
      continue;
    }
    std::vector<int64_t> key = key_of(-3, u, depth);
    if (depth == deepest) key.push_back(u.constant);
    Scope& here = scope(depth);
    if (const auto it = here.sums.find(key); it != here.sums.end()) {
      total = it->second;
      continue;
    }
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(here.insert_before);
    emit_level();
    here.sums[key] = total;
  }
  return total;
}

Value* IndexEmitter::lane_numbers(int bits) const {
  llvm::SmallVector<llvm::Constant*, 16> numbers;
  llvm::Type* type = b_.getIntNTy(bits);
  for (int i = 0; i < context_.lanes; ++i) numbers.push_back(llvm::ConstantInt::get(type, i));
  return llvm::ConstantVector::get(numbers);
}

Val IndexEmitter::materialize(const Affine& a) {
  if (a.uniform()) return {uniform_sum(a), true};
  Value* v = a.vector;
  if (a.lane != 0) {
    Value* ramp =
        b_.CreateMul(lane_numbers(64), llvm::ConstantInt::get(values_.with_lanes(b_.getInt64Ty()), a.lane));
    v = v == nullptr ? ramp : b_.CreateAdd(v, ramp);
  }
  if (!a.terms.empty() || a.constant != 0) v = b_.CreateAdd(v, values_.broadcast({uniform_sum(a), true}));
  return {v, false};
}

Value* IndexEmitter::pointer_to(llvm::Type* type, Value* base, int64_t base_number, const Affine& element) {
  Value* pointer = base;
  llvm::SmallVector<int, 4> depths;
  for (const auto& [atom, coefficient] : element.terms) depths.push_back(atom->depth);
  std::sort(depths.begin(), depths.end());
  depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
  for (const int depth : depths) {
    const auto emit_level = [&] {
      Affine level;
      for (const auto& term : element.terms)
        if (term.atom->depth == depth) level.terms.push_back(term);
      pointer = b_.CreateGEP(type, pointer, uniform_sum(level));
    };
    if (depth == kHere) {
      emit_level();
      continue;
    }
    Scope& here = scope(depth);
    const std::vector<int64_t> key = key_of(base_number, element, depth);
    if (const auto it = here.sums.find(key); it != here.sums.end()) {
      pointer = it->second;
      continue;
    }
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(here.insert_before);
    emit_level();
    here.sums[key] = pointer;
  }
  if (element.constant != 0) pointer = b_.CreateGEP(type, pointer, b_.getInt64(element.constant));
  return pointer;
}

// Comparisons are decided by ranges where possible; this removes guards from unrolled code.
Val IndexEmitter::compare(BinaryOp op, const Affine& a, const Affine& b) {
  const Affine d = sum(a, b, -1);
  const Interval range = range_of(d);
  if (near(range) && near(range_of(a)) && near(range_of(b))) {
    const auto decided = [&](bool always, bool never) -> Value* {
      return always ? b_.getTrue() : never ? b_.getFalse() : nullptr;
    };
    Value* known = nullptr;
    if (op == BinaryOp::kLt) known = decided(range.max < 0, range.min >= 0);
    if (op == BinaryOp::kLe) known = decided(range.max <= 0, range.min > 0);
    if (op == BinaryOp::kGt) known = decided(range.min > 0, range.max <= 0);
    if (op == BinaryOp::kGe) known = decided(range.min >= 0, range.max < 0);
    const bool apart = range.min > 0 || range.max < 0;
    const bool equal = range.min == 0 && range.max == 0;
    if (op == BinaryOp::kEq) known = decided(equal, apart);
    if (op == BinaryOp::kNe) known = decided(apart, equal);
    if (known != nullptr) return {known, true};
    if (!d.uniform() && range.min > INT32_MIN / 2 && range.max < INT32_MAX / 2 && d.lane > INT16_MIN &&
        d.lane < INT16_MAX) {
      // Compares lane * coefficient with a uniform value in 32 bits.
      llvm::Type* i32 = values_.with_lanes(b_.getInt32Ty());
      Affine rest = d;
      rest.lane = 0;
      Value* limit = b_.CreateNeg(b_.CreateTrunc(uniform_sum(rest), b_.getInt32Ty()));
      Value* ramp = b_.CreateMul(lane_numbers(32), llvm::ConstantInt::get(i32, d.lane));
      return {values_.comparison(op, DType::kI32, ramp, values_.broadcast({limit, true})), false};
    }
    if (d.uniform()) {
      Affine terms = d;
      terms.constant = 0;
      return {values_.comparison(op, DType::kI64, uniform_sum(terms),
                                 b_.getInt64(0 - static_cast<uint64_t>(d.constant))),
              true};
    }
  }
  Val x = materialize(a);
  Val y = materialize(b);
  const bool vectors = values_.unify(x, y);
  return {values_.comparison(op, DType::kI64, x.value, y.value), !vectors};
}

}  // namespace tensorsmith::codegen
