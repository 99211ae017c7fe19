#include "codegen/c/lanes.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "ir/linear.h"
#include "ir/simplify.h"
#include "ir/structural.h"

namespace tensorsmith::codegen {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;

namespace {

bool is_element(DType t) {
  return t == DType::kF32 || t == DType::kF64 || t == DType::kI32 || t == DType::kU32;
}

// Returns the elements between neighbouring lanes if the index is linear in the lane's variable.
std::optional<int64_t> stride_of(const Expr& flat, const ir::Var& lane) {
  const ir::LinearSum sum = ir::linearize(flat);
  if (sum.bad) return std::nullopt;
  int64_t stride = 0;
  for (const auto& [atom, coefficient] : sum.terms) {
    const auto* ref = ir::as<ir::VarRef>(atom);
    if (ref != nullptr && ref->var == lane) {
      stride += coefficient;
    } else if (ir::uses_var(atom, lane)) {
      return std::nullopt;
    }
  }
  return stride;
}

std::optional<int64_t> stride_of(const ir::Buffer& buffer, const std::vector<Expr>& indices,
                                 const ir::Var& lane) {
  return stride_of(flat_index(buffer, indices, {}), lane);
}

// Returns whether the cast is a load of small elements that are widened while they are loaded.
bool is_widening(const ir::Cast& cast, DType to) {
  const DType from = cast.a.dtype();
  if (ir::as<ir::Load>(cast.a) == nullptr) return false;
  if (to == DType::kF32) return from == DType::kBF16 || from == DType::kI8 || from == DType::kU8;
  return to == DType::kI32 &&
         (from == DType::kI8 || from == DType::kU8 || from == DType::kI16 || from == DType::kU16);
}

bool is_vector_function(ir::Intrinsic function) {
  return function == ir::Intrinsic::kExp || function == ir::Intrinsic::kLog ||
         function == ir::Intrinsic::kTanh || function == ir::Intrinsic::kErf;
}

// Checks whether the body consists only of constructs that LaneWriter can write.
class Inspection {
 public:
  explicit Inspection(const ir::Var& lane) : lane_(lane) {}
  int64_t widest = 0;  // bytes of the widest lane

  bool ok(const ir::Stmt& s) {
    return ir::visit(ir::overloaded{[&](const ir::For& loop) {
                                      return loop.kind != ir::ForKind::kParallel &&
                                             !ir::uses_var(loop.extent, lane_) && ok(loop.body);
                                    },
                                    [&](const ir::Store& store) {
                                      const auto stride = stride_of(store.buffer, store.indices, lane_);
                                      if (!stride || *stride == 0 || !is_element(store.value.dtype()))
                                        return false;
                                      take(store.value.dtype());
                                      return ok(store.value);
                                    },
                                    [&](const ir::IfThenElse& branch) {
                                      return !ir::uses_var(branch.condition, lane_) && ok(branch.then_body) &&
                                             (!branch.else_body || ok(branch.else_body));
                                    },
                                    [&](const ir::Seq& seq) {
                                      return std::all_of(seq.stmts.begin(), seq.stmts.end(),
                                                         [&](const ir::Stmt& part) { return ok(part); });
                                    },
                                    [&](const ir::Allocate&) { return false; }},
                     s);
  }

 private:
  void take(DType t) { widest = std::max<int64_t>(widest, ir::bytes_of(t)); }

  bool ok(const Expr& e) {
    if (!ir::uses_var(e, lane_)) return true;
    if (const auto* known = known_.find(e)) return *known;
    const bool result = ok_node(e);
    known_.remember(e, result);
    return result;
  }

  bool ok_node(const Expr& e) {
    const DType t = e.dtype();
    if (!is_element(t)) return false;
    take(t);
    const bool real = t == DType::kF32 || t == DType::kF64;
    return ir::visit(
        ir::overloaded{[&](const ir::IntImm&) { return true; }, [&](const ir::FloatImm&) { return true; },
                       [&](const ir::VarRef&) { return false; },
                       [&](const ir::Unary& op) { return op.op == ir::UnaryOp::kNeg && real && ok(op.a); },
                       [&](const ir::Binary& op) {
                         switch (op.op) {
                           case BinaryOp::kAdd:
                           case BinaryOp::kSub:
                           case BinaryOp::kMul:
                           case BinaryOp::kMin:
                           case BinaryOp::kMax:
                             return ok(op.a) && ok(op.b);
                           case BinaryOp::kDiv:
                             return real && ok(op.a) && ok(op.b);
                           default:
                             return false;
                         }
                       },
                       [&](const ir::Select& s) { return ok_select(s); },
                       [&](const ir::Cast& c) {
                         if (is_widening(c, t)) return ok_load(*ir::as<ir::Load>(c.a));
                         const DType from = c.a.dtype();
                         return (from == t || (from == DType::kI32 && real) ||
                                 (from == DType::kF32 && t == DType::kF64)) &&
                                ok(c.a);
                       },
                       [&](const ir::Call& c) {
                         return (real || ir::is_dot(c.intrinsic)) &&
                                std::all_of(c.args.begin(), c.args.end(),
                                            [&](const Expr& a) { return is_element(a.dtype()) && ok(a); });
                       },
                       [&](const ir::Load& l) { return ok_load(l); }},
        e);
  }

  bool ok_load(const ir::Load& l) { return stride_of(l.buffer, l.indices, lane_).has_value(); }

  // If the condition differs between lanes, both sides are evaluated for all lanes, so they may
  // load only elements that the condition loads too.
  bool ok_select(const ir::Select& s) {
    if (!ir::uses_var(s.condition, lane_)) return ok(s.a) && ok(s.b);
    const auto* compare = ir::as<ir::Binary>(s.condition);
    if (compare == nullptr || !ir::is_comparison(compare->op)) return false;
    const DType t = compare->a.dtype();
    if (!is_element(t) || ir::bytes_of(t) != ir::bytes_of(s.a.dtype())) return false;
    const std::vector<const ir::Load*> safe = ir::loads_of(s.condition);
    for (const Expr* side : {&s.a, &s.b}) {
      for (const ir::Load* l : ir::loads_of(*side)) {
        const bool read = std::any_of(safe.begin(), safe.end(), [&](const ir::Load* other) {
          return other->buffer == l->buffer && ir::structural_equal(l->indices, other->indices);
        });
        if (!read) return false;
      }
    }
    return ok(compare->a) && ok(compare->b) && ok(s.a) && ok(s.b);
  }

  const ir::Var& lane_;
  ir::ExprMemo<bool> known_;
};

}  // namespace

// The header defines functions for vectors of a power of two of bytes up to this many; compilers
// split wider ones.
constexpr int kMaxCVectorBytes = 64;

std::optional<int64_t> lanes_of_body(const ir::For& loop, int vector_bytes) {
  Inspection body(loop.var);
  if (!body.ok(loop.body) || body.widest == 0) return std::nullopt;
  const uint64_t bytes = std::min(vector_bytes, kMaxCVectorBytes);
  const int64_t lanes = std::bit_floor(bytes / static_cast<uint64_t>(body.widest));
  return lanes < 2 ? std::nullopt : std::optional<int64_t>(lanes);
}

std::string VectorParts::definitions() const {
  std::string text;
  for (const VectorType& t : types) {
    text += "TS_VECTOR(" + t.name() + ", " + std::string(memory_type(t.dtype)) + ", " +
            std::to_string(t.lanes * ir::bytes_of(t.dtype)) + ")\n";
  }
  for (const auto& [lanes, function] : functions)
    text += "TS_VECTOR_" + std::string(ir::to_string(function)) + "(" + std::to_string(lanes) + ")\n";
  return text;
}

std::string LaneWriter::type(DType dtype) {
  const VectorType type{dtype, lanes_};
  parts_.types.insert(type);
  return type.name();
}

std::string LaneWriter::bits(DType dtype) {
  return type(ir::bytes_of(dtype) == 8 ? DType::kI64 : DType::kI32);
}

Text LaneWriter::named(const std::string& vector_type, const Text& value) {
  const std::string name = env_.names.make("t");
  scalars_.out().line("const ts_" + vector_type + " " + name + " = " + value.text + ";");
  return {name};
}

void LaneWriter::store(const ir::Store& store) {
  // The lane's variable denotes the vector's first lane, both in the text and in constants.
  std::vector<Expr> indices;
  for (const Expr& i : store.indices) indices.push_back(scalars_.announce(i));
  count_uses(store.value, uses_);
  const Text v = vector(store.value);
  const int64_t stride = *stride_of(store.buffer, store.indices, lane_);
  const std::string vector_type = type(store.value.dtype());
  const Expr flat = flat_index(store.buffer, indices, env_.bounds);
  if (stride == 1) {
    scalars_.out().line("TS_STORE(" + vector_type + ", &" + scalars_.place(store.buffer, flat) + ", " +
                        v.text + ");");
    return;
  }
  const Text whole = named(vector_type, v);
  for (int64_t l = 0; l < lanes_; ++l) {
    scalars_.out().line(scalars_.place(store.buffer, ir::simplify(flat + Expr(l * stride), env_.bounds)) +
                        " = " + whole.text + "[" + std::to_string(l) + "];");
  }
}

LaneWriter::Val LaneWriter::value(const Expr& e) {
  if (!uses_lane(e)) return {scalars_.value(scalars_.announce(e)), true};
  if (const Text* known = known_.find(e)) return {*known, false};
  Text text = node(e);
  if (const auto uses = uses_.find(e.get()); uses != uses_.end() && uses->second > 1) {
    text = named(type(e.dtype()), text);
    known_.remember(e, text);
  }
  return {text, false};
}

Text LaneWriter::vector(const Expr& e) {
  const Val v = value(e);
  return v.uniform ? call_text("TS_SPLAT", {{type(e.dtype())}, v.text}) : v.text;
}

Text LaneWriter::node(const Expr& e) {
  return ir::visit(
      ir::overloaded{
          [&](const ir::IntImm&) -> Text { throw_internal_error(__FILE__, __LINE__, "uniform"); },
          [&](const ir::FloatImm&) -> Text { throw_internal_error(__FILE__, __LINE__, "uniform"); },
          [&](const ir::VarRef&) -> Text {
            throw_internal_error(__FILE__, __LINE__, "the variable of a vectorized loop");
          },
          [&](const ir::Unary& op) -> Text {
            return {"-" + vector(op.a).at_least(Strength::kPrimary), Strength::kUnary};
          },
          [&](const ir::Binary& op) { return binary(e, op); },
          [&](const ir::Select& s) { return select(e, s); }, [&](const ir::Cast& c) { return cast(e, c); },
          [&](const ir::Call& c) { return call(e, c); }, [&](const ir::Load& l) { return load(l); }},
      e);
}

Text LaneWriter::binary(const Expr& e, const ir::Binary& op) {
  const DType t = e.dtype();
  const auto negated = [](const Text& x, bool negate) {
    return negate ? Text{"-" + x.at_least(Strength::kPrimary), Strength::kUnary} : x;
  };
  if (const auto fused = fused_product(e, env_.options)) {
    const Text sum = vector(fused->sum);
    const Text a = vector(fused->a);
    const Text b = vector(fused->b);
    return call_text("ts_fma_" + type(t),
                     {negated(a, fused->negate_product), b, negated(sum, fused->negate_sum)});
  }
  const Text a = vector(op.a);
  const Text b = vector(op.b);
  // Integer arithmetic wraps around, so it is done on unsigned integers.
  const bool wraps = t == DType::kI32;
  const auto arithmetic = [&](const char* text, Strength strength) {
    if (!wraps) {
      const Strength right = strength == Strength::kSum ? Strength::kProduct : Strength::kUnary;
      return Text{a.at_least(strength) + text + b.at_least(right), strength};
    }
    const std::string u = "(ts_" + type(DType::kU32) + ")";
    return Text{"(ts_" + type(t) + ")(" + u + a.at_least(Strength::kUnary) + text + u +
                    b.at_least(Strength::kUnary) + ")",
                Strength::kUnary};
  };
  switch (op.op) {
    case BinaryOp::kAdd:
      return arithmetic(" + ", Strength::kSum);
    case BinaryOp::kSub:
      return arithmetic(" - ", Strength::kSum);
    case BinaryOp::kMul:
      return arithmetic(" * ", Strength::kProduct);
    case BinaryOp::kDiv:
      return arithmetic(" / ", Strength::kProduct);
    default:
      break;
  }
  // NaN propagates: the first operand is the result if it is NaN or if it is smaller (greater, for
  // max).
  const bool real = ir::is_float(t);
  const Text x = named(type(t), a);
  const Text y = named(type(t), b);
  std::string first = x.text + (op.op == BinaryOp::kMin ? " < " : " > ") + y.text;
  if (real) first = "(" + first + ") | (" + x.text + " != " + x.text + ")";
  const Text chosen = named(bits(t), {"(ts_" + bits(t) + ")(" + first + ")"});
  return call_text("TS_SELECT", {{type(t)}, {bits(t)}, chosen, x, y});
}

Text LaneWriter::mask(const Expr& e, DType like) {
  const auto* compare = ir::as<ir::Binary>(e);
  const Text a = vector(compare->a);
  const Text b = vector(compare->b);
  return named(bits(like),
               {"(ts_" + bits(like) + ")(" + a.at_least(Strength::kSum) + " " +
                std::string(ir::to_string(compare->op)) + " " + b.at_least(Strength::kSum) + ")"});
}

Text LaneWriter::select(const Expr& e, const ir::Select& select) {
  const std::string result = type(e.dtype());
  if (uses_lane(select.condition)) {
    const Text chosen = mask(select.condition, e.dtype());
    const Text a = vector(select.a);
    const Text b = vector(select.b);
    return call_text("TS_SELECT", {{result}, {bits(e.dtype())}, chosen, a, b});
  }
  const Text condition = scalars_.value(scalars_.announce(select.condition));
  const std::string name = env_.names.make("t");
  scalars_.out().line("ts_" + result + " " + name + ";");
  const auto side = [&](const Expr& x) {
    return scalars_.nested([&] {
      const size_t mark = known_.mark();
      const Text v = vector(x);
      scalars_.out().line(name + " = " + v.text + ";");
      known_.rollback(mark);
    });
  };
  Block first = side(select.a);
  Block second = side(select.b);
  scalars_.out().open("if (" + condition.text + ")");
  scalars_.out().append(std::move(first));
  scalars_.out().middle("} else {");
  scalars_.out().append(std::move(second));
  scalars_.out().close();
  return {name};
}

Text LaneWriter::cast(const Expr& e, const ir::Cast& cast) {
  const DType to = e.dtype();
  const DType from = cast.a.dtype();
  if (from == to) return named(type(to), vector(cast.a));  // a named product is not contracted
  if (is_widening(cast, to)) {
    const Text elements = load(*ir::as<ir::Load>(cast.a));
    if (from != DType::kBF16) return call_text("TS_CONVERT", {{type(to)}, elements});
    return {"(ts_" + type(to) + ")(TS_CONVERT(" + type(DType::kU32) + ", " + elements.text + ") << 16)",
            Strength::kUnary};
  }
  return call_text("TS_CONVERT", {{type(to)}, vector(cast.a)});
}

// The header has vector versions of some functions; the others are called lane by lane.
Text LaneWriter::call(const Expr& e, const ir::Call& call) {
  if (e.dtype() == DType::kF32 && is_vector_function(call.intrinsic)) {
    const Text argument = vector(call.args[0]);
    const std::string name = env_.names.make("t");
    (void)bits(DType::kF32);
    const bool uses_exp = call.intrinsic == ir::Intrinsic::kTanh || call.intrinsic == ir::Intrinsic::kErf;
    if (uses_exp) parts_.functions.insert({lanes_, ir::Intrinsic::kExp});
    parts_.functions.insert({lanes_, call.intrinsic});
    scalars_.out().line("ts_" + type(e.dtype()) + " " + name + " = " + argument.text + ";");
    scalars_.out().line("ts_" + std::string(ir::to_string(call.intrinsic)) + "_" + type(e.dtype()) + "(&" +
                        name + ");");
    return {name};
  }
  std::vector<Text> arguments;
  for (const Expr& a : call.args) arguments.push_back(named(type(a.dtype()), vector(a)));
  const bool dot = ir::is_dot(call.intrinsic);
  const std::string function = "ts_" + std::string(ir::to_string(call.intrinsic)) +
                               (dot ? "" : "_" + std::string(value_suffix(call.args[0].dtype())));
  const std::string name = env_.names.make("t");
  const std::string counter = env_.names.make("lane");
  scalars_.out().line("ts_" + type(e.dtype()) + " " + name + ";");
  scalars_.out().open("for (int " + counter + " = 0; " + counter + " < " + std::to_string(lanes_) + "; ++" +
                      counter + ")");
  for (Text& a : arguments) a.text += "[" + counter + "]";
  scalars_.out().line(name + "[" + counter + "] = " + call_text(function, arguments).text + ";");
  scalars_.out().close();
  return {name};
}

Text LaneWriter::load(const ir::Load& load) {
  const DType stored = load.buffer->dtype == DType::kBF16 ? DType::kU16 : load.buffer->dtype;
  const int64_t stride = *stride_of(load.buffer, load.indices, lane_);
  std::vector<Expr> indices;
  for (const Expr& i : load.indices) indices.push_back(scalars_.announce(i));
  const Expr flat = flat_index(load.buffer, indices, env_.bounds);
  const std::string vector_type = type(stored);
  if (stride == 1) return {"TS_LOAD(" + vector_type + ", &" + scalars_.place(load.buffer, flat) + ")"};
  std::string elements;
  for (int64_t l = 0; l < lanes_; ++l) {
    elements +=
        (l > 0 ? ", " : "") + scalars_.place(load.buffer, ir::simplify(flat + Expr(l * stride), env_.bounds));
  }
  return named(vector_type, {"{" + elements + "}"});
}

}  // namespace tensorsmith::codegen
