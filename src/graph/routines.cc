#include "graph/routines.h"

#include "graph/ops/registry.h"
#include "runtime/model_format.h"

namespace tensorsmith::graph {

std::optional<RoutineUse> routine_of(const Graph& graph, const Node& node) {
  const OpEntry* entry = find_operator(node.op);
  if (entry == nullptr || entry->route == nullptr) return std::nullopt;
  WorkloadBuilder builder;
  std::vector<ir::Buffer> inputs;
  for (const ValueId id : node.inputs) {
    inputs.push_back(id == kNoValue ? nullptr
                                    : ir::make_buffer("in", graph.values[id].dtype, graph.values[id].shape));
  }
  OpContext ctx(graph, node, inputs, builder);
  if (!check_signature(ctx, entry->signature).ok()) return std::nullopt;
  auto use = entry->route(ctx);
  if (!use.ok() || ctx.error()) return std::nullopt;
  return *std::move(use);
}

Result<std::vector<std::shared_ptr<const lower::Tensor>>> run_routine(
    const Graph& graph, const Node& node, const RoutineUse& use,
    std::span<const std::shared_ptr<const lower::Tensor>> inputs) {
  TS_ASSIGN_OR_RETURN(const runtime::RoutineDemands demands, runtime::demands_of(use.call));
  const runtime::Routine* routine = runtime::find_routine(use.call.name);
  std::vector<std::shared_ptr<const lower::Tensor>> results(node.outputs.size());
  std::vector<std::shared_ptr<lower::Tensor>> written;
  std::vector<void*> buffers;
  for (const size_t i : use.inputs)
    buffers.push_back(const_cast<std::byte*>(inputs[i]->data.data()));  // only read
  for (const size_t o : use.outputs) {
    const Value& value = graph.values[node.outputs[o]];
    written.push_back(std::make_shared<lower::Tensor>(lower::Tensor::zeros(value.dtype, value.shape)));
    buffers.push_back(written.back()->data.data());
    results[o] = written.back();
  }
  const auto blocks = [](int64_t bytes) {
    return std::vector<std::max_align_t>((bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
  };
  std::vector<std::max_align_t> shared = blocks(demands.shared_bytes), own = blocks(demands.thread_bytes);
  TensorsmithKernelContext context{};
  context.num_threads = 1;
  context.shared_workspace = shared.data();
  context.thread_workspace = own.data();
  context.thread_workspace_stride = demands.thread_bytes;
  if (Status status = routine->run(context, use.call.parameters, buffers.data()); !status.ok())
    return Error{status.error().code, node.name, node.op + ": " + status.error().reason};
  return results;
}

}  // namespace tensorsmith::graph
