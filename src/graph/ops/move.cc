#include "graph/ops/move.h"

#include <algorithm>

#include "graph/infer.h"
#include "graph/ops/registry.h"
#include "ir/linear.h"
#include "ir/simplify.h"

namespace tensorsmith::graph {

using ir::Expr;

namespace {

// Matches dim * factor + offset with at most one variable of the axes.
std::optional<MoveStep::Index> one_variable(const Expr& index, std::span<const ir::Axis> axes) {
  const auto affine = ir::as_affine(index);
  if (!affine || affine->terms.size() > 1) return std::nullopt;
  MoveStep::Index result;
  result.offset = affine->constant;
  if (affine->terms.empty()) return result;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].var == affine->terms[0].atom) {
      result.dim = d;
      result.factor = affine->terms[0].coefficient;
      return result;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<MoveStep> move_step(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1 || node.inputs.empty() || node.inputs[0] == kNoValue) return std::nullopt;
  MoveStep step;
  step.to = graph.values[node.outputs[0]].shape;
  if (product(step.to) == 0) return std::nullopt;
  if (has_trait(node.op, kReshapes)) {
    step.is_reshape = true;
    return step;
  }
  if (node.op != "Transpose" && node.op != "Slice" && node.op != "Gather") return std::nullopt;
  const auto work = node_workload(graph, node);
  if (!work.ok() || work->workload.operations.empty()) return std::nullopt;
  const ir::Operation& op = *work->workload.operations.back();
  if (op.is_placeholder() || op.output() != work->outputs[0]) return std::nullopt;
  const auto* load = ir::as<ir::Load>(op.bodies[0]);
  if (load == nullptr || load->buffer != work->inputs[0]) return std::nullopt;
  for (const Expr& index : load->indices) {
    const auto affine = one_variable(index, op.spatial);
    if (!affine || affine->factor > kMaxGeometry || affine->factor < -kMaxGeometry) return std::nullopt;
    step.source.push_back(*affine);
  }
  return step;
}

Exprs compose_moves(const Shape& from, std::span<const MoveStep> steps, std::span<const ir::Axis> axes) {
  Exprs indices = vars_of(axes);
  for (size_t k = steps.size(); k-- > 0;) {
    const Shape& source = k == 0 ? from : steps[k - 1].to;
    if (steps[k].is_reshape) {
      indices = reshape_indices(source, steps[k].to, indices);
      continue;
    }
    Exprs moved;
    for (const MoveStep::Index& a : steps[k].source) {
      moved.push_back(a.dim < 0 ? Expr(a.offset) : indices[a.dim] * Expr(a.factor) + Expr(a.offset));
    }
    indices = std::move(moved);
  }
  ir::VarBounds bounds;
  for (const ir::Axis& axis : axes) {
    bounds[axis.var.get()] = {0, std::max<int64_t>(axis.extent - 1, 0)};
  }
  for (Expr& index : indices) index = ir::simplify(index, bounds);
  return indices;
}

std::vector<int64_t> encode_step(const MoveStep& step) {
  std::vector<int64_t> numbers = {step.is_reshape ? 1 : 0, std::ssize(step.to)};
  numbers.insert(numbers.end(), step.to.begin(), step.to.end());
  for (const MoveStep::Index& a : step.source) numbers.insert(numbers.end(), {a.dim, a.factor, a.offset});
  return numbers;
}

std::optional<MoveStep> decode_step(std::span<const int64_t> numbers, const Shape& from) {
  if (numbers.size() < 2 || numbers[1] < 0 || numbers[1] > std::ssize(numbers) - 2) {
    return std::nullopt;
  }
  MoveStep step;
  step.is_reshape = numbers[0] != 0;
  const int64_t rank = numbers[1];
  const auto shape = numbers.subspan(2, rank);
  step.to.assign(shape.begin(), shape.end());
  if (!is_reasonable(step.to)) return std::nullopt;
  const auto rest = numbers.subspan(2 + rank);
  if (step.is_reshape) {
    return rest.empty() && product(step.to) == product(from) ? std::optional(step) : std::nullopt;
  }
  if (rest.size() != 3 * from.size()) return std::nullopt;
  for (size_t d = 0; d < from.size(); ++d) {
    const MoveStep::Index a{rest[3 * d], rest[3 * d + 1], rest[3 * d + 2]};
    // The first and the last position must be inside the source.
    const int64_t extent = a.dim < 0 || a.dim >= numbers[1] ? 1 : step.to[a.dim];
    if (a.dim >= numbers[1] || a.factor > kMaxGeometry || a.factor < -kMaxGeometry || a.offset < 0 ||
        a.offset >= from[d]) {
      return std::nullopt;
    }
    const int64_t last = a.offset + (a.dim < 0 ? 0 : (extent - 1) * a.factor);
    if (extent < 1 || last < 0 || last >= from[d]) return std::nullopt;
    step.source.push_back(a);
  }
  return step;
}

namespace {

Result<Buffers> emit_move(OpContext& ctx) {
  std::vector<MoveStep> steps;
  for (int k = 0;; ++k) {
    const auto numbers = ctx.ints_attr("step_" + std::to_string(k));
    if (!numbers) break;
    const auto step = decode_step(*numbers, steps.empty() ? ctx.shape(0) : steps.back().to);
    if (!step) return ctx.invalid("step " + std::to_string(k) + " does not fit");
    steps.push_back(*step);
  }
  if (steps.empty()) return ctx.invalid("attribute step_0 is missing");
  std::vector<ir::Axis> axes = axes_for(steps.back().to);
  Expr body = ir::load(ctx.in(0), compose_moves(ctx.shape(0), steps, axes));
  return Buffers{ctx.compute("move", std::move(axes), std::move(body))};
}

}  // namespace

std::span<const OpEntry> move_operators() {
  static const OpEntry kEntries[] = {{kMoveOperator, "a:T", emit_move}};
  return kEntries;
}

}  // namespace tensorsmith::graph
