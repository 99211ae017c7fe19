#include "record/ansor/write_dag.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/ansor/dag_syntax.h"

namespace tensorsmith::record {

namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;

class DagWriter {
 public:
  Result<std::string> run(const ir::Workload& workload) {
    for (const auto& op : workload.operations) {
      operation_ = op.get();
      write(*op);
      if (error_) return *std::move(error_);
    }
    if (out_.ends_with('\n')) out_.pop_back();
    return std::move(out_);
  }

 private:
  std::string fail(std::string reason) {
    if (!error_)
      error_ = Error{ErrorCode::kUnsupported, "operation '" + operation_->name + "'", std::move(reason)};
    return "";
  }

  void write(const ir::Operation& op) {
    for (const ir::Buffer& buffer : op.outputs)
      if (buffer->dtype != DType::kF32) fail("a tensor that is not f32 cannot be written in TVM's text");
    if (op.outputs.size() != 1) fail("a reduction of two values cannot be written in TVM's text");
    if (error_) return;
    names_[op.output().get()] = op.name;
    if (op.is_placeholder()) {
      out_ += op.name + " = PLACEHOLDER [";
      for (size_t d = 0; d < op.output()->shape.size(); ++d)
        out_ += (d > 0 ? ", " : "") + std::to_string(op.output()->shape[d]);
      out_ += "]\n";
      return;
    }
    seen_.clear();
    out_ += op.name + "(";
    for (size_t a = 0; a < op.spatial.size(); ++a) out_ += (a > 0 ? ", " : "") + op.spatial[a].var.name();
    const std::string body = text(op.bodies.front());
    out_ += ") " + combiner(op) + " " + body + "\n";
    // The text lists reduce axes in the order of their first use.
    for (size_t a = 0; a < op.reduce.size(); ++a)
      if (a >= seen_.size() || !(seen_[a] == op.reduce[a].var))
        fail("its reduce axes are not first used in their order, as TVM's text requires");
  }

  std::string combiner(const ir::Operation& op) {
    switch (op.combiner) {
      case ir::Combiner::kNone:
        return "=";
      case ir::Combiner::kSum:
        return "+=";
      case ir::Combiner::kProd:
        return "*=";
      case ir::Combiner::kMax:
        return "max=";
      case ir::Combiner::kMin:
        return "min=";
      case ir::Combiner::kArgMax:
      case ir::Combiner::kArgMin:
        break;
    }
    return fail("a reduction of two values cannot be written in TVM's text");
  }

  std::string text(const Expr& e) {
    const DType dtype = e.dtype();
    return ir::visit(ir::overloaded{[&](const ir::IntImm& imm) { return std::to_string(imm.value); },
                                    [&](const ir::FloatImm& imm) { return number(imm.value, dtype); },
                                    [&](const ir::VarRef& ref) {
                                      for (const ir::Axis& axis : operation_->reduce) {
                                        if (!(axis.var == ref.var)) continue;
                                        bool known = false;
                                        for (const ir::Var& var : seen_) known = known || var == ref.var;
                                        if (!known) seen_.push_back(ref.var);
                                      }
                                      return ref.var.name();
                                    },
                                    [&](const ir::Unary& op) {
                                      if (op.op == ir::UnaryOp::kBitNot)
                                        return fail("operations on bits cannot be written in TVM's text");
                                      return (op.op == ir::UnaryOp::kNot ? "!" : "-") + text(op.a);
                                    },
                                    [&](const ir::Binary& op) { return binary(op); },
                                    [&](const ir::Select& s) {
                                      const std::string condition = text(s.condition), a = text(s.a);
                                      return "tir.if_then_else(" + condition + ", " + a + ", " + text(s.b) +
                                             ")";
                                    },
                                    [&](const ir::Cast& cast) { return this->cast(cast, dtype); },
                                    [&](const ir::Call& call) {
                                      const std::string_view function = tvm_name(call.intrinsic);
                                      if (function.empty())
                                        return fail("one of its intrinsics cannot be written in TVM's text");
                                      std::string list;
                                      for (const Expr& argument : call.args)
                                        list += (list.empty() ? "" : ", ") + text(argument);
                                      return "tir." + std::string(function) + "(" + list + ")";
                                    },
                                    [&](const ir::Load& load) {
                                      std::string list;
                                      for (const Expr& index : load.indices)
                                        list += (list.empty() ? "" : ", ") + text(index);
                                      return names_.at(load.buffer.get()) + "[" + list + "]";
                                    }},
                     e);
  }

  std::string binary(const ir::Binary& op) {
    const std::string a = text(op.a), b = text(op.b);
    const auto infix = [&](const char* symbol) { return "(" + a + symbol + b + ")"; };
    const auto call = [&](const char* name) { return std::string(name) + "(" + a + ", " + b + ")"; };
    switch (op.op) {
      case BinaryOp::kAdd:
        return infix(" + ");
      case BinaryOp::kSub:
        return infix(" - ");
      case BinaryOp::kMul:
        return infix("*");
      case BinaryOp::kDiv:
        return infix("/");
      case BinaryOp::kFloorDiv:
        return call("floordiv");
      case BinaryOp::kFloorMod:
        return call("floormod");
      case BinaryOp::kMin:
        return call("min");
      case BinaryOp::kMax:
        return call("max");
      case BinaryOp::kEq:
        return infix(" == ");
      case BinaryOp::kNe:
        return infix(" != ");
      case BinaryOp::kLt:
        return infix(" < ");
      case BinaryOp::kLe:
        return infix(" <= ");
      case BinaryOp::kGt:
        return infix(" > ");
      case BinaryOp::kGe:
        return infix(" >= ");
      case BinaryOp::kAnd:
        return infix(" && ");
      case BinaryOp::kOr:
        return infix(" || ");
      case BinaryOp::kBitAnd:
      case BinaryOp::kBitOr:
      case BinaryOp::kBitXor:
      case BinaryOp::kShl:
      case BinaryOp::kShr:
        break;
    }
    return fail("operations on bits cannot be written in TVM's text");
  }

  // Omits a cast of f32 to itself, which keeps a product from being fused into a sum: TVM has no
  // such cast.
  std::string cast(const ir::Cast& cast, DType to) {
    const std::string a = text(cast.a);
    if (cast.a.dtype() == to) return a;
    for (const DType written : {DType::kF32, DType::kF64, DType::kI64, DType::kI32, DType::kBool})
      if (to == written) return std::string(row_of(to).name) + "(" + a + ")";
    return fail("one of its conversions cannot be written in TVM's text");
  }

  std::string number(double value, DType dtype) {
    if (!std::isfinite(value)) return fail("an infinity or NaN cannot be written in TVM's text");
    if (dtype != DType::kF32 && dtype != DType::kF64)
      return fail("a number that is not f32 cannot be written in TVM's text");
    std::array<char, 64> digits;
    const auto end =
        dtype == DType::kF32
            ? std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<float>(value)).ptr
            : std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return std::string(digits.data(), end) + (dtype == DType::kF32 ? "f" : "f64");
  }

  std::string out_;
  const ir::Operation* operation_ = nullptr;
  std::unordered_map<const ir::BufferNode*, std::string> names_;
  std::vector<ir::Var> seen_;  // reduce axes, in the order of their first use
  std::optional<Error> error_;
};

}  // namespace

Result<std::string> to_dag_text(const ir::Workload& workload) { return DagWriter().run(workload); }

}  // namespace tensorsmith::record
