#include <algorithm>

#include "graph/ops/move.h"
#include "graph/ops/registry.h"
#include "graph/passes/passes.h"
#include "ir/analysis.h"

namespace tensorsmith::graph {

namespace {

// Longer chains are divided into several moves, because each node's steps include a copy of its
// producer's.
constexpr size_t kMaxMergedSteps = 16;

// The source of a moved value.
struct Origin {
  ValueId source = kNoValue;
  std::vector<MoveStep> steps;
};

// Returns whether the last dimension is read in order, without dividing its variable, so that
// copies can use vectors.
bool reads_rows(const Exprs& indices, const ir::Var& last) {
  bool divided = false;
  for (const ir::Expr& index : indices) {
    ir::for_each_expr(index, [&](const ir::Expr& e) {
      const auto* binary = ir::as<ir::Binary>(e);
      if (binary == nullptr) return;
      const bool division = binary->op == ir::BinaryOp::kFloorDiv || binary->op == ir::BinaryOp::kFloorMod;
      divided = divided || (division && ir::uses_var(binary->a, last));
    });
  }
  return !divided;
}

bool worth_merging(const Graph& graph, const Origin& origin) {
  const bool moves = std::any_of(origin.steps.begin(), origin.steps.end(),
                                 [](const MoveStep& step) { return !step.is_reshape; });
  if (origin.steps.size() < 2 || !moves) return false;
  const Shape& from = graph.values[origin.source].shape;
  const std::vector<ir::Axis> axes = axes_for(origin.steps.back().to);
  if (axes.empty()) return true;
  // Dimensions of extent 1 do not matter.
  const ir::Axis* last = nullptr;
  for (const ir::Axis& axis : axes) {
    if (axis.extent > 1) last = &axis;
  }
  return last == nullptr || reads_rows(compose_moves(from, origin.steps, axes), last->var);
}

}  // namespace

void merge_moves(Graph& graph) {
  const IdVector<ValueId, int> uses = count_uses(graph);
  IdVector<ValueId, Origin> origins(graph.values.size());
  for (Node& node : graph.nodes) {
    const auto step = move_step(graph, node);
    if (!step) continue;
    const ValueId in = node.inputs[0];
    Origin origin = origins[in];
    if (origin.source == kNoValue || origin.steps.size() >= kMaxMergedSteps) origin = {in, {}};
    origin.steps.push_back(*step);
    // A reshape costs nothing by itself, so taking over the copy of its producer pays only if the
    // producer disappears.
    const bool producer_disappears = origin.source != in && uses[in] == 1;
    if ((!step->is_reshape || producer_disappears) && worth_merging(graph, origin)) {
      Node move{node.name, kMoveOperator, node.opset, {}, {origin.source}, node.outputs};
      for (size_t k = 0; k < origin.steps.size(); ++k) {
        move.attributes["step_" + std::to_string(k)] = encode_step(origin.steps[k]);
      }
      node = std::move(move);
    }
    origins[node.outputs[0]] = std::move(origin);
  }
}

}  // namespace tensorsmith::graph
