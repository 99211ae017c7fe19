// A second, deliberately naive evaluator of workloads: recursion over the expression tree, one
// scalar at a time, in the documented order. Slow; an independent check of lower::evaluate.
#pragma once

#include <map>
#include <stdexcept>
#include <vector>

#include "ir/scalar.h"
#include "ir/workload.h"
#include "lower/interpreter.h"

namespace tensorsmith::test {

struct NaiveEvaluator {
  std::map<const ir::BufferNode*, lower::Tensor> tensors;
  std::map<const ir::VarNode*, int64_t> vars;

  ir::Scalar eval(const ir::Expr& e) {
    return ir::visit(
        ir::overloaded{
            [&](const ir::IntImm& x) { return ir::scalar_int(e->dtype, x.value); },
            [&](const ir::FloatImm& x) { return ir::scalar_float(e->dtype, x.value); },
            [&](const ir::VarRef& x) { return ir::scalar_int(e->dtype, vars.at(x.var.get())); },
            [&](const ir::Unary& x) { return ir::eval_unary(x.op, eval(x.a)); },
            [&](const ir::Binary& x) {
              const ir::Scalar a = eval(x.a);
              return ir::eval_binary(x.op, a, eval(x.b));
            },
            [&](const ir::Select& x) { return eval(x.condition).i != 0 ? eval(x.a) : eval(x.b); },
            [&](const ir::Cast& x) { return ir::eval_cast(e->dtype, eval(x.a)); },
            [&](const ir::Call& x) {
              const ir::Scalar a = eval(x.args[0]);
              return ir::eval_call(x.intrinsic, a, x.args.size() > 1 ? eval(x.args[1]) : ir::Scalar{});
            },
            [&](const ir::Load& x) {
              int64_t flat = 0;
              for (size_t d = 0; d < x.indices.size(); ++d) {
                const int64_t i = eval(x.indices[d]).i;
                if (i < 0 || i >= x.buffer->shape[d]) throw std::out_of_range("index");
                flat = flat * x.buffer->shape[d] + i;
              }
              return tensors.at(x.buffer.get()).at(flat);
            },
        },
        e);
  }

  // Calls fn for every point of the axes in row-major order.
  template <class Fn>
  void for_each_point(const std::vector<ir::Axis>& axes, size_t d, const Fn& fn) {
    if (d == axes.size()) return fn();
    for (int64_t i = 0; i < axes[d].extent; ++i) {
      vars[axes[d].var.get()] = i;
      for_each_point(axes, d + 1, fn);
    }
  }

  void run(const ir::Operation& op) {
    std::vector<lower::Tensor> out;
    for (const ir::Buffer& b : op.outputs) out.push_back(lower::Tensor::zeros(b->dtype, b->shape));
    int64_t flat = 0;
    for_each_point(op.spatial, 0, [&] {
      if (!op.has_reduction()) {
        out[0].set(flat++, eval(op.bodies[0]));
        return;
      }
      const bool arg = op.combiner == ir::Combiner::kArgMax || op.combiner == ir::Combiner::kArgMin;
      const ir::DType dtype = op.output()->dtype;
      ir::Scalar best = eval(ir::identity_of(op.combiner, dtype));
      ir::Scalar index = arg ? eval(ir::identity_of(ir::Combiner::kMin, op.outputs[1]->dtype)) : ir::Scalar{};
      double sum = best.f;
      for_each_point(op.reduce, 0, [&] {
        const ir::Scalar next = eval(op.bodies[0]);
        const auto is = [&](ir::BinaryOp compare) { return ir::eval_binary(compare, next, best).i != 0; };
        if (arg) {
          const ir::Scalar i = eval(op.bodies[1]);
          if (is(op.combiner == ir::Combiner::kArgMax ? ir::BinaryOp::kGt : ir::BinaryOp::kLt) ||
              (is(ir::BinaryOp::kEq) && i.i < index.i)) {
            best = next;
            index = i;
          }
        } else if (ir::is_float(dtype) && op.combiner == ir::Combiner::kSum) {
          sum += next.f;  // in double, rounded once
        } else if (ir::is_float(dtype) && op.combiner == ir::Combiner::kProd) {
          sum *= next.f;
        } else if (op.combiner == ir::Combiner::kSum) {
          best = ir::eval_binary(ir::BinaryOp::kAdd, best, next);
        } else if (op.combiner == ir::Combiner::kProd) {
          best = ir::eval_binary(ir::BinaryOp::kMul, best, next);
        } else {
          best = ir::eval_binary(op.combiner == ir::Combiner::kMax ? ir::BinaryOp::kMax : ir::BinaryOp::kMin,
                                 best, next);
        }
      });
      if (ir::is_float(dtype) && (op.combiner == ir::Combiner::kSum || op.combiner == ir::Combiner::kProd)) {
        best = ir::scalar_float(dtype, sum);
      }
      if (arg) out[1].set(flat, index);
      out[0].set(flat++, best);
    });
    for (size_t k = 0; k < op.outputs.size(); ++k) tensors[op.outputs[k].get()] = std::move(out[k]);
  }

  static std::vector<lower::Tensor> evaluate(const ir::Workload& w,
                                             const std::vector<lower::Tensor>& inputs) {
    NaiveEvaluator naive;
    size_t input = 0;
    for (const ir::OperationRef& op : w.operations) {
      if (op->is_placeholder()) {
        naive.tensors[op->output().get()] = inputs.at(input++);
      } else {
        naive.run(*op);
      }
    }
    std::vector<lower::Tensor> out;
    for (const ir::Buffer& b : w.outputs) out.push_back(naive.tensors.at(b.get()));
    return out;
  }
};

}  // namespace tensorsmith::test
