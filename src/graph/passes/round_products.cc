#include "graph/ops/registry.h"
#include "graph/passes/passes.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::graph {

namespace {

// Returns the length of a Gemm's or MatMul's sums, or a convolution's input channels per group.
int64_t summed_elements(const Graph& graph, const Node& node) {
  const auto& left = graph.values[node.inputs[0]].shape;
  if (node.op == "Conv") return graph.values[node.inputs[1]].shape.at(1);
  if (left.empty()) return 0;
  const bool transposed = node.op == "Gemm" && node.integer("transA", 0) != 0;
  return transposed ? left.front() : left.back();
}

}  // namespace

void round_products(Graph& graph) {
  constexpr int64_t kStep = sched::kMmaStepBytes / ir::bytes_of(ir::DType::kF32);
  for (Node& node : graph.nodes) {
    if (!has_trait(node.op, kRoundsFactors)) continue;
    const auto is_f32 = [&](ValueId id) {
      return id != kNoValue && graph.values[id].dtype == ir::DType::kF32;
    };
    if (node.inputs.size() < 2 || !is_f32(node.inputs[0]) || !is_f32(node.inputs[1])) continue;
    const int64_t summed = summed_elements(graph, node);
    if (summed > 0 && summed % kStep == 0) node.attributes[kRoundFactors] = int64_t{1};
  }
}

}  // namespace tensorsmith::graph
