#include "ir/workload.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/analysis.h"
#include "ir/expr_memo.h"

namespace tensorsmith::ir {

std::string_view to_string(Combiner combiner) {
  switch (combiner) {
    case Combiner::kNone:
      return "none";
    case Combiner::kSum:
      return "sum";
    case Combiner::kProd:
      return "prod";
    case Combiner::kMax:
      return "max";
    case Combiner::kMin:
      return "min";
    case Combiner::kArgMax:
      return "argmax";
    case Combiner::kArgMin:
      return "argmin";
  }
  return "?";
}

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

int64_t lowest_int(DType dtype) {
  if (!is_signed_int(dtype)) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - bits_of(dtype));
}
int64_t highest_int(DType dtype) {
  if (is_signed_int(dtype)) return ~lowest_int(dtype);
  return dtype == DType::kU64 ? -1 : (int64_t{1} << bits_of(dtype)) - 1;
}

}  // namespace

Expr identity_of(Combiner combiner, DType dtype) {
  switch (combiner) {
    case Combiner::kSum:
      return make_const(dtype, 0);
    case Combiner::kProd:
      return make_const(dtype, 1);
    case Combiner::kMax:
    case Combiner::kArgMax:
      return is_float(dtype) ? float_imm(dtype, -kInf) : int_imm(dtype, lowest_int(dtype));
    case Combiner::kMin:
    case Combiner::kArgMin:
      return is_float(dtype) ? float_imm(dtype, kInf) : int_imm(dtype, highest_int(dtype));
    case Combiner::kNone:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "a combiner is needed for an identity");
}

Expr combine(Combiner combiner, Expr accumulated, Expr next) {
  const bool logical = next.dtype() == DType::kBool;
  switch (combiner) {
    case Combiner::kSum:
      return binary(BinaryOp::kAdd, std::move(accumulated), std::move(next));
    case Combiner::kProd:
      return binary(BinaryOp::kMul, std::move(accumulated), std::move(next));
    case Combiner::kMax:
      return binary(logical ? BinaryOp::kOr : BinaryOp::kMax, std::move(accumulated), std::move(next));
    case Combiner::kMin:
      return binary(logical ? BinaryOp::kAnd : BinaryOp::kMin, std::move(accumulated), std::move(next));
    case Combiner::kNone:
    case Combiner::kArgMax:
    case Combiner::kArgMin:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "combine of a combiner that is not single-valued");
}

OperationRef placeholder(std::string name, DType dtype, std::vector<int64_t> shape, bool is_constant,
                         bool reduced_range) {
  Operation op;
  op.kind = OperationKind::kPlaceholder;
  op.is_constant = is_constant;
  op.reduced_range = reduced_range;
  for (size_t d = 0; d < shape.size(); ++d) op.spatial.push_back({Var("i" + std::to_string(d)), shape[d]});
  op.outputs.push_back(make_buffer(name, dtype, std::move(shape)));
  op.name = std::move(name);
  return std::make_shared<const Operation>(std::move(op));
}

OperationRef compute(std::string name, std::vector<Axis> spatial, std::vector<Axis> reduce, Combiner combiner,
                     std::vector<Expr> bodies) {
  TS_CHECK(!bodies.empty() && bodies.size() <= 2, "operation '" + name + "': it must have one or two bodies");
  std::vector<int64_t> shape;
  for (const Axis& axis : spatial) shape.push_back(axis.extent);
  Operation op;
  for (size_t i = 0; i < bodies.size(); ++i) {
    TS_CHECK(bodies[i].defined(), "operation '" + name + "': undefined body");
    op.outputs.push_back(make_buffer(i == 0 ? name : name + ".index", bodies[i].dtype(), shape));
  }
  op.name = std::move(name);
  op.spatial = std::move(spatial);
  op.reduce = std::move(reduce);
  op.combiner = combiner;
  op.bodies = std::move(bodies);
  return std::make_shared<const Operation>(std::move(op));
}

std::vector<Buffer> Workload::inputs() const {
  std::vector<Buffer> out;
  for (const OperationRef& op : operations) {
    if (op->is_placeholder()) out.push_back(op->output());
  }
  return out;
}

std::optional<size_t> Workload::producer_of(const BufferNode* buffer) const {
  for (size_t i = 0; i < operations.size(); ++i) {
    for (const Buffer& output : operations[i]->outputs) {
      if (output.get() == buffer) return i;
    }
  }
  return std::nullopt;
}

namespace {

// Tensors have fewer bytes than this, so that index and size arithmetic never overflows.
constexpr int64_t kMaxTensorBytes = int64_t{1} << 46;
constexpr int64_t kMaxWrittenSize = 1'000'000;  // nodes

class WorkloadVerifier {
 public:
  Status run(const Workload& w) {
    std::unordered_set<std::string> names;
    for (const OperationRef& op : w.operations) {
      if (op == nullptr) return Error{ErrorCode::kInvalidArgument, "workload", "an operation is null"};
      op_ = op.get();
      if (op->name.empty()) return fail("an operation has no name");
      for (const Buffer& output : op->outputs) {
        if (output == nullptr) return fail("an output is null");
        if (!names.insert(output->name).second) return fail("the name '" + output->name + "' is used twice");
        if (seen_.count(output.get()) != 0) return fail("its output is defined twice");
      }
      TS_RETURN_IF_ERROR(check_shape());
      TS_RETURN_IF_ERROR(op->is_placeholder() ? check_placeholder() : check_compute());
      for (const Buffer& output : op->outputs) seen_.insert(output.get());
    }
    for (const Buffer& output : w.outputs) {
      if (output == nullptr || seen_.count(output.get()) == 0)
        return Error{ErrorCode::kInvalidArgument, "workload", "an output is not defined by any operation"};
    }
    std::unordered_set<const BufferNode*> unique;
    for (const Buffer& output : w.outputs) {
      if (!unique.insert(output.get()).second)
        return Error{ErrorCode::kInvalidArgument, "workload", "'" + output->name + "' is an output twice"};
    }
    return {};
  }

 private:
  Error fail(const std::string& reason) const {
    return {ErrorCode::kInvalidArgument, "operation '" + op_->name + "'", reason};
  }

  Status check_axes(const std::vector<Axis>& axes) {
    for (const Axis& axis : axes) {
      if (!axis.var.defined() || axis.var.dtype() != DType::kI64)
        return fail("an axis variable is not an i64");
      if (axis.extent < 0) return fail("axis '" + axis.var.name() + "' has a negative extent");
      if (!axis_vars_.insert(axis.var.get()).second)
        return fail("axis '" + axis.var.name() + "' is used twice");
      own_.insert(axis.var.get());
    }
    return {};
  }

  Status check_shape() {
    own_.clear();
    const size_t wanted = op_->is_placeholder() ? 1 : op_->bodies.size();
    if (op_->outputs.size() != wanted || wanted == 0) return fail("it does not have one output per body");
    TS_RETURN_IF_ERROR(check_axes(op_->spatial));
    TS_RETURN_IF_ERROR(check_axes(op_->reduce));
    int64_t iterations = 1;
    for (const std::vector<Axis>* axes : {&op_->spatial, &op_->reduce}) {
      for (const Axis& axis : *axes) {
        if (axis.extent > kMaxTensorBytes ||
            __builtin_mul_overflow(iterations, std::max<int64_t>(axis.extent, 1), &iterations))
          return fail("its axes span too many points");
      }
    }
    for (const Buffer& output : op_->outputs) {
      if (output->shape.size() != op_->spatial.size())
        return fail("the rank of its output is not its number of axes");
      int64_t bytes = bytes_of(output->dtype);
      for (size_t d = 0; d < output->shape.size(); ++d) {
        if (output->shape[d] != op_->spatial[d].extent)
          return fail("the shape of its output is not that of its axes");
        if (__builtin_mul_overflow(bytes, std::max<int64_t>(output->shape[d], 1), &bytes) ||
            bytes > kMaxTensorBytes)
          return fail("tensor '" + output->name + "' is too large");
      }
      if (!output->strides.empty()) return fail("tensors of a workload must not have strides");
    }
    return {};
  }

  Status check_placeholder() const {
    if (!op_->bodies.empty() || !op_->reduce.empty() || op_->combiner != Combiner::kNone)
      return fail("a placeholder must not have bodies or reductions");
    const DType dtype = op_->output()->dtype;
    if (op_->reduced_range && (!op_->is_constant || (dtype != DType::kI8 && dtype != DType::kU8)))
      return fail("only a constant of i8 or u8 can have a reduced range");
    return {};
  }

  Status check_compute() {
    if (op_->is_constant || op_->reduced_range) return fail("only a placeholder can be constant");
    const bool arg = op_->combiner == Combiner::kArgMax || op_->combiner == Combiner::kArgMin;
    if (op_->bodies.size() != (arg ? 2u : 1u))
      return fail(arg ? "argmax and argmin must have two bodies" : "it must have one body");
    if (op_->has_reduction() != !op_->reduce.empty())
      return fail("a combiner and reduction axes must be given together");
    for (size_t i = 0; i < op_->bodies.size(); ++i) {
      const Expr& body = op_->bodies[i];
      if (!body.defined()) return fail("a body is undefined");
      if (body.dtype() != op_->outputs[i]->dtype) return fail("a body and its output have different dtypes");
      // Keys and records contain the body as text, and features count the operations in the text.
      if (written_size(body) > kMaxWrittenSize) return fail("a body is too large to be written out");
      TS_RETURN_IF_ERROR(check_body(body));
    }
    const DType dtype = op_->bodies.front().dtype();
    if (dtype == DType::kBool && (op_->combiner == Combiner::kSum || op_->combiner == Combiner::kProd || arg))
      return fail("bool values are reduced by max (or) and min (and) only");
    if (arg && !is_int(op_->bodies[1].dtype())) return fail("the index body is not an integer");
    return {};
  }

  Status check_body(const Expr& body) const {
    std::optional<Error> error;
    for_each_expr(body, [&](const Expr& e) {
      if (error.has_value()) return;
      if (const VarRef* ref = as<VarRef>(e)) {
        if (own_.count(ref->var.get()) == 0) error = fail("'" + ref->var.name() + "' is not one of its axes");
      } else if (const Load* l = as<Load>(e)) {
        if (seen_.count(l->buffer.get()) == 0)
          error = fail("it reads '" + l->buffer->name + "', which no earlier operation defines");
        else if (l->indices.size() != l->buffer->shape.size())
          error = fail("it reads '" + l->buffer->name + "' with a wrong number of indices");
      }
    });
    if (error.has_value()) return *std::move(error);
    return {};
  }

  const Operation* op_ = nullptr;
  std::unordered_set<const BufferNode*> seen_;
  std::unordered_set<const VarNode*> axis_vars_;
  std::unordered_set<const VarNode*> own_;
};

// Counts the operations of one evaluation. In conditions, only floating-point operations count:
// integer operations there are index arithmetic.
class OperationCounter {
 public:
  double count(const Expr& e, bool in_condition) {
    ExprMemo<double>& memo = memo_[in_condition ? 1 : 0];
    if (const double* known = memo.find(e)) return *known;
    const double total = count_node(e, in_condition);
    memo.remember(e, total);
    return total;
  }

 private:
  double count_node(const Expr& e, bool in_condition) {
    const double own = in_condition && !is_float(e.dtype()) ? 0 : 1;
    return visit(
        overloaded{
            [](const IntImm&) { return 0.0; },
            [](const FloatImm&) { return 0.0; },
            [](const VarRef&) { return 0.0; },
            [&](const Unary& n) { return (n.op == UnaryOp::kNot ? 0 : own) + count(n.a, in_condition); },
            [&](const Binary& n) {
              if (is_comparison(n.op) || n.op == BinaryOp::kAnd || n.op == BinaryOp::kOr)
                return count(n.a, true) + count(n.b, true);
              return own + count(n.a, in_condition) + count(n.b, in_condition);
            },
            [&](const Select& n) {
              return count(n.condition, true) + count(n.a, in_condition) + count(n.b, in_condition);
            },
            [&](const Cast& n) { return count(n.a, in_condition); },
            [&](const Call& n) {
              double total = 1;
              for (const Expr& arg : n.args) total += count(arg, in_condition);
              return total;
            },
            [](const Load&) { return 0.0; },
        },
        e);
  }

  ExprMemo<double> memo_[2];
};

}  // namespace

Status verify(const Workload& workload) { return WorkloadVerifier().run(workload); }

double flop_count(const Workload& workload) {
  double total = 0;
  for (const OperationRef& op : workload.operations) {
    if (op->is_placeholder()) continue;
    double points = 1;
    for (const Axis& axis : op->spatial) points *= axis.extent;
    for (const Axis& axis : op->reduce) points *= axis.extent;
    // The index body of an argmax is index arithmetic.
    total += points * (OperationCounter().count(op->bodies.front(), false) + (op->has_reduction() ? 1 : 0));
  }
  return total;
}

}  // namespace tensorsmith::ir
