// Builds the workload of a parsed DAG.
#include "record/ansor/dag.h"

#include <algorithm>

namespace tensorsmith::record {

namespace {

using ir::DType;
using ir::Expr;
using Kind = DagNode::Kind;

class BodyBuilder {
 public:
  BodyBuilder(const DagOperation& op, const std::vector<ir::Axis>& axes,
              const std::vector<ir::OperationRef>& made)
      : op_(op), axes_(axes), made_(made) {}

  // Returns a tensor's element as an expression.
  Result<Expr> value() {
    Expr e = expression(op_.body);
    if (!error_ && e.dtype() == DType::kI64 && op_.nodes[op_.body].kind != Kind::kCast)
      e = ir::cast(DType::kF32, e);
    if (error_) return *std::move(error_);
    return e;
  }

 private:
  const DagNode& at(int id) const { return op_.nodes[id]; }

  Expr fail(const DagNode& node, std::string reason) {
    if (!error_)
      error_ = Error{ErrorCode::kCorrupt, std::to_string(node.line) + ":" + std::to_string(node.column),
                     std::move(reason)};
    return 0;
  }

  // Converts both operands to one dtype: TVM writes no cast for a literal that takes the other
  // operand's dtype.
  void unify(Expr& a, Expr& b) {
    const DType x = a.dtype(), y = b.dtype();
    if (x == y) return;
    const auto weight = [](DType t) {
      return t == DType::kBool  ? 0
             : t == DType::kI64 ? 1
             : ir::is_int(t)    ? 2
             : t == DType::kF32 ? 4
             : ir::is_float(t)  ? 5
                                : 3;
    };
    Expr& weak = weight(x) < weight(y) ? a : b;
    const DType to = weight(x) < weight(y) ? y : x;
    if (const auto* imm = ir::as<ir::FloatImm>(weak); imm != nullptr && ir::is_float(to)) {
      weak = ir::float_imm(to, imm->value);
    } else if (const auto value = ir::as_int(weak); value && ir::is_float(to)) {
      weak = ir::float_imm(to, *value);
    } else {
      weak = ir::cast(to, weak);
    }
  }

  Expr truth(const DagNode& node, Expr e) {
    if (e.dtype() == DType::kBool) return e;
    if (e.dtype() == DType::kI64) return e != Expr(0);
    return fail(node, "expected a condition, not a number");
  }

  Expr expression(int id) {
    if (error_) return 0;
    const DagNode& node = at(id);
    switch (node.kind) {
      case Kind::kInt:
        return Expr(node.integer);
      case Kind::kFloat:
        return ir::float_imm(node.dtype, node.number);
      case Kind::kAxis:
        return axes_[node.index].var;
      case Kind::kRead:
        return read(node);
      case Kind::kUnary:
        return unary(node);
      case Kind::kBinary:
        return binary(node);
      case Kind::kSelect: {
        Expr condition = truth(at(node.children[0]), expression(node.children[0]));
        Expr a = expression(node.children[1]), b = expression(node.children[2]);
        if (error_) return 0;
        unify(a, b);
        return ir::select(condition, a, b);
      }
      case Kind::kCast: {
        const Expr e = expression(node.children[0]);
        // Indices are kI64 whatever width TVM uses.
        const bool index = e.dtype() == DType::kI64 && ir::is_int(node.dtype);
        return error_ || index || e.dtype() == node.dtype ? e : ir::cast(node.dtype, e);
      }
      case Kind::kCall:
        return call(node);
    }
    return 0;
  }

  Expr read(const DagNode& node) {
    std::vector<Expr> indices;
    for (int child : node.children) {
      Expr index = expression(child);
      if (error_) return 0;
      if (!ir::is_int(index.dtype())) return fail(at(child), "an index must be an integer");
      indices.push_back(index.dtype() == DType::kI64 ? index : ir::cast(DType::kI64, index));
    }
    return ir::load(made_[node.index]->output(), std::move(indices));
  }

  Expr unary(const DagNode& node) {
    Expr a = expression(node.children[0]);
    if (error_) return 0;
    if (node.unary == ir::UnaryOp::kNot) {
      const Expr condition = truth(node, a);
      return error_ ? Expr(0) : !condition;
    }
    if (a.dtype() == DType::kBool) return fail(node, "a condition cannot be negated with -");
    return -a;
  }

  Expr binary(const DagNode& node) {
    Expr a = expression(node.children[0]), b = expression(node.children[1]);
    if (error_) return 0;
    if (node.binary == ir::BinaryOp::kAnd || node.binary == ir::BinaryOp::kOr) {
      a = truth(node, a);
      b = truth(node, b);
      return error_ ? Expr(0) : ir::binary(node.binary, a, b);
    }
    unify(a, b);
    const DType dtype = a.dtype();
    if (dtype == DType::kBool && !ir::is_comparison(node.binary))
      return fail(node, "arithmetic on conditions is not defined");
    if (ir::is_float(dtype) &&
        (node.binary == ir::BinaryOp::kFloorDiv || node.binary == ir::BinaryOp::kFloorMod))
      return fail(node, "floordiv and floormod are only defined for integers");
    return ir::binary(node.binary, a, b);
  }

  Expr call(const DagNode& node) {
    std::vector<Expr> args;
    for (int child : node.children) args.push_back(expression(child));
    if (error_) return 0;
    if (args.size() == 2) unify(args[0], args[1]);
    for (Expr& arg : args) {
      if (ir::is_float(arg.dtype())) continue;
      const bool any_number = node.intrinsic == ir::Intrinsic::kAbs || node.intrinsic == ir::Intrinsic::kSign;
      if (any_number && ir::is_int(arg.dtype())) continue;
      if (arg.dtype() == DType::kBool) return fail(node, "functions of conditions are not defined");
      arg = ir::cast(DType::kF32, arg);
    }
    return ir::call(node.intrinsic, std::move(args));
  }

  const DagOperation& op_;
  const std::vector<ir::Axis>& axes_;
  const std::vector<ir::OperationRef>& made_;
  std::optional<Error> error_;
};

}  // namespace

Result<ir::Workload> build_workload(const DagSyntax& dag, const DagExtents& extents) {
  ir::Workload workload;
  std::vector<char> read(dag.size(), 0);
  for (size_t o = 0; o < dag.size(); ++o) {
    const DagOperation& op = dag[o];
    if (op.is_placeholder) {
      workload.operations.push_back(ir::placeholder(op.name, DType::kF32, op.shape));
      continue;
    }
    std::vector<ir::Axis> axes;
    for (size_t a = 0; a < op.axes.size(); ++a) axes.push_back({ir::Var(op.axes[a]), extents[o][a]});
    TS_ASSIGN_OR_RETURN(Expr body, BodyBuilder(op, axes, workload.operations).value());
    if (op.combiner != ir::Combiner::kNone && body.dtype() == DType::kBool)
      body = ir::cast(DType::kF32, body);
    const auto reduce = axes.begin() + op.rank;
    workload.operations.push_back(
        ir::compute(op.name, {axes.begin(), reduce}, {reduce, axes.end()}, op.combiner, {std::move(body)}));
    for (const DagNode& node : op.nodes) {
      if (node.kind == Kind::kRead) read[node.index] = 1;
    }
  }
  for (size_t o = 0; o < dag.size(); ++o) {
    if (read[o] == 0 && !dag[o].is_placeholder) workload.outputs.push_back(workload.operations[o]->output());
  }
  if (workload.outputs.empty()) return Error{ErrorCode::kCorrupt, "1:1", "the DAG computes nothing"};
  TS_RETURN_IF_ERROR(ir::verify(workload));
  return workload;
}

Result<ir::Workload> parse_dag(std::string_view text, std::string_view workload_key) {
  TS_ASSIGN_OR_RETURN(const DagSyntax dag, parse_dag_syntax(text));
  TS_ASSIGN_OR_RETURN(const DagExtents extents, infer_extents(dag, extents_of_key(dag, workload_key)));
  return build_workload(dag, extents);
}

}  // namespace tensorsmith::record
