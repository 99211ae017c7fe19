#include "graph/attention.h"

#include <algorithm>
#include <optional>

#include "ir/analysis.h"

namespace tensorsmith::graph {

namespace {

std::optional<size_t> producer_of(const WorkloadBuilder& builder, const ir::Buffer& buffer) {
  const auto& operations = builder.operations();
  for (size_t i = 0; i < operations.size(); ++i)
    if (operations[i]->outputs.size() == 1 && operations[i]->output() == buffer) return i;
  return std::nullopt;
}

struct Quotient {
  const ir::Load* dividend = nullptr;
  const ir::Load* divisor = nullptr;
};

// Matches e[i] / s[f(i)], where f omits some axes of i.
std::optional<Quotient> quotient_of(const ir::Operation& op) {
  if (op.has_reduction() || op.bodies.size() != 1) return std::nullopt;
  const auto* division = ir::as<ir::Binary>(op.bodies.front());
  if (division == nullptr || division->op != ir::BinaryOp::kDiv || !ir::is_float(op.output()->dtype))
    return std::nullopt;
  const Quotient found{ir::as<ir::Load>(division->a), ir::as<ir::Load>(division->b)};
  if (found.dividend == nullptr || found.divisor == nullptr) return std::nullopt;
  if (found.dividend->indices.size() != op.spatial.size()) return std::nullopt;
  for (size_t d = 0; d < op.spatial.size(); ++d) {
    const auto* var = ir::as<ir::VarRef>(found.dividend->indices[d]);
    if (var == nullptr || !(var->var == op.spatial[d].var)) return std::nullopt;
  }
  return found;
}

bool mentions(const ir::Expr& index, const std::vector<ir::Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](const ir::Axis& axis) { return ir::uses_var(index, axis.var); });
}

}  // namespace

ir::Buffer divide_after_contraction(const ir::Buffer& product, WorkloadBuilder& builder) {
  const auto at = producer_of(builder, product);
  if (!at) return product;
  const ir::OperationRef contraction = builder.operations()[*at];
  if (!contraction->has_reduction() || contraction->combiner != ir::Combiner::kSum) return product;
  const auto* factors = ir::as<ir::Binary>(contraction->bodies.front());
  if (factors == nullptr || factors->op != ir::BinaryOp::kMul) return product;
  const auto* read = ir::as<ir::Load>(factors->a);
  const auto* values = ir::as<ir::Load>(factors->b);
  if (read == nullptr || values == nullptr || values->buffer == read->buffer) return product;
  const auto softmax = producer_of(builder, read->buffer);
  if (!softmax) return product;
  const ir::OperationRef quotients = builder.operations()[*softmax];
  const auto quotient = quotient_of(*quotients);
  if (!quotient) return product;
  ir::VarMap place;  // of the element that the contraction reads
  for (size_t d = 0; d < quotients->spatial.size(); ++d)
    place[quotients->spatial[d].var.get()] = read->indices[d];
  std::vector<ir::Axis> axes;
  ir::VarMap renamed;
  std::vector<ir::Expr> own;
  for (const ir::Axis& axis : contraction->spatial) {
    axes.push_back({ir::Var(axis.var.name()), axis.extent});
    renamed[axis.var.get()] = axes.back().var;
    own.push_back(axes.back().var);
  }
  std::vector<ir::Expr> row;
  for (const ir::Expr& index : quotient->divisor->indices) {
    const ir::Expr here = ir::substitute(index, place);
    if (mentions(here, contraction->reduce)) return product;
    row.push_back(ir::substitute(here, renamed));
  }
  const ir::OperationRef undivided =
      ir::compute(contraction->name, contraction->spatial, contraction->reduce, contraction->combiner,
                  {ir::load(quotient->dividend->buffer, read->indices) * factors->b});
  const ir::Buffer sums = undivided->output();
  builder.replace(*at, undivided);
  return builder.compute("attention", std::move(axes), {}, ir::Combiner::kNone,
                         ir::load(sums, own) / ir::load(quotient->divisor->buffer, row));
}

}  // namespace tensorsmith::graph
