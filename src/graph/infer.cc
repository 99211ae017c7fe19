#include "graph/infer.h"

#include <algorithm>
#include <cstring>

#include "graph/emit.h"
#include "graph/ops/registry.h"
#include "graph/regions.h"
#include "graph/routines.h"

namespace tensorsmith::graph {

namespace {

using TensorRef = std::shared_ptr<const lower::Tensor>;

int64_t bytes_of(const ir::Buffer& buffer) { return ir::bytes_of(buffer->dtype, buffer->num_elements()); }

bool is_fill(const std::string& op) { return op == "ConstantOfShape"; }

// Returns whether a large result has more elements than each input, and computing one takes a few operations: then a
// kernel that computes them takes no longer than one that reads them, and needs no memory.
bool repeats_elements(const Node& node, const NodeWorkload& work, int64_t bytes) {
  constexpr int64_t kLarge = int64_t{1} << 20;
  if (bytes <= kLarge || !(is_fill(node.op) || has_trait(node.op, kMovesElements | kElementwise)))
    return false;
  int64_t most = 0;
  for (const ir::Buffer& input : work.inputs)
    if (input != nullptr) most = std::max(most, input->num_elements());
  return work.outputs[0] != nullptr && work.outputs[0]->num_elements() > most;
}

TensorRef fill(const Node& node, const ir::Buffer& output) {
  auto tensor = std::make_shared<lower::Tensor>(lower::Tensor::zeros(output->dtype, output->shape));
  const auto* value = node.find<lower::Tensor>("value");
  if (value != nullptr) {
    const size_t width = value->data.size();
    const bool zero =
        std::all_of(value->data.begin(), value->data.end(), [](std::byte b) { return b == std::byte{0}; });
    for (size_t at = 0; !zero && at + width <= tensor->data.size(); at += width) {
      std::memcpy(tensor->data.data() + at, value->data.data(), width);
    }
  }
  return tensor;
}

TensorRef with_shape(const lower::Tensor& tensor, const Shape& shape) {
  auto result = std::make_shared<lower::Tensor>(tensor);
  result->shape = shape;
  return result;
}

}  // namespace

Result<NodeWorkload> node_workload(const Graph& graph, const Node& node) {
  NodeWorkload result;
  WorkloadBuilder builder;
  for (ValueId id : node.inputs) {
    if (id == kNoValue) {
      result.inputs.push_back(nullptr);
      continue;
    }
    const Value& value = graph.values[id];
    result.inputs.push_back(
        builder.placeholder(value.name, value.dtype, value.shape, value.constant != nullptr));
  }
  TS_ASSIGN_OR_RETURN(result.outputs, emit(graph, node, result.inputs, builder));
  result.workload.operations = builder.operations();
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const ir::Buffer& output = result.outputs[i];
    if (node.outputs[i] == kNoValue) continue;
    if (output == nullptr) {
      return Error{ErrorCode::kUnsupported, node.name,
                   node.op + ": output " + std::to_string(i) + " is not supported"};
    }
    auto& listed = result.workload.outputs;
    const bool alias = std::find(result.inputs.begin(), result.inputs.end(), output) != result.inputs.end();
    if (!alias && std::find(listed.begin(), listed.end(), output) == listed.end()) listed.push_back(output);
  }
  return result;
}

double iteration_count(const ir::Operation& op) {
  double count = 1;
  for (const ir::Axis& axis : op.spatial) count *= axis.extent;
  for (const ir::Axis& axis : op.reduce) count *= axis.extent;
  return count;
}

double evaluation_cost(const ir::Workload& workload) {
  double total = 0;
  for (const ir::OperationRef& op : workload.operations) {
    if (op->is_placeholder()) continue;
    total += iteration_count(*op);
  }
  return total;
}

Result<std::vector<TensorRef>> evaluate_node(const NodeWorkload& node, std::span<const TensorRef> inputs) {
  std::vector<TensorRef> computed;
  if (!node.workload.outputs.empty()) {
    std::vector<lower::Tensor> values;
    for (const TensorRef& input : inputs) {
      if (input != nullptr) values.push_back(*input);
    }
    TS_ASSIGN_OR_RETURN(std::vector<lower::Tensor> results, lower::evaluate(node.workload, values));
    for (lower::Tensor& tensor : results) {
      computed.push_back(std::make_shared<const lower::Tensor>(std::move(tensor)));
    }
  }
  std::vector<TensorRef> outputs;
  for (const ir::Buffer& output : node.outputs) {
    const auto& listed = node.workload.outputs;
    const auto as_computed = std::find(listed.begin(), listed.end(), output);
    const auto as_input = std::find(node.inputs.begin(), node.inputs.end(), output);
    if (output != nullptr && as_computed != listed.end()) {
      outputs.push_back(computed[as_computed - listed.begin()]);
    } else if (output != nullptr && as_input != node.inputs.end()) {
      outputs.push_back(inputs[as_input - node.inputs.begin()]);
    } else {
      outputs.push_back(nullptr);
    }
  }
  return outputs;
}

namespace {

// Evaluates a node whose operator is only supported on constants.
Status fold_data_dependent(Graph& graph, const Node& node, const FoldEntry& entry, FoldLimits& limits) {
  WorkloadBuilder builder;
  std::vector<ir::Buffer> inputs;
  bool constant = true;
  double size = 0;
  for (ValueId id : node.inputs) {
    if (id == kNoValue) {
      inputs.push_back(nullptr);
      continue;
    }
    const Value& value = graph.values[id];
    constant = constant && value.constant != nullptr;
    inputs.push_back(builder.placeholder(value.name, value.dtype, value.shape, true));
    size += inputs.back()->num_elements();
  }
  // For run-time inputs, emit() returns the error.
  if (!constant || size > limits.max_cost) return node_workload(graph, node).error();
  OpContext ctx(graph, node, inputs, builder);
  TS_RETURN_IF_ERROR(check_signature(ctx, entry.signature));
  auto results = entry.fold(ctx);
  if (!results.ok()) return std::move(results).error();
  if (ctx.error()) return *ctx.error();
  if (results->size() < node.outputs.size()) return ctx.unsupported("an output of the node is not supported");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    Value& value = graph.values[node.outputs[i]];
    lower::Tensor& tensor = (*results)[i];
    const auto bytes = std::ssize(tensor.data);
    if (bytes > limits.constant_bytes_left) {
      return Error{ErrorCode::kResourceExhausted, node.name,
                   node.op + ": the model's constants take too much memory"};
    }
    limits.constant_bytes_left -= bytes;
    value.dtype = tensor.dtype;
    value.shape = tensor.shape;
    value.constant = std::make_shared<const lower::Tensor>(std::move(tensor));
  }
  return {};
}

}  // namespace

Status infer_node(Graph& graph, const Node& node, FoldLimits& limits) {
  if (node.region != nullptr) return infer_region(graph, node);
  if (const FoldEntry* entry = find_fold_operator(node.op)) {
    return fold_data_dependent(graph, node, *entry, limits);
  }
  TS_ASSIGN_OR_RETURN(const NodeWorkload work, node_workload(graph, node));
  int64_t bytes = 0;
  bool aliases_only = true;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    Value& value = graph.values[node.outputs[i]];
    value.dtype = work.outputs[i]->dtype;
    value.shape = work.outputs[i]->shape;
    const bool alias =
        std::find(work.inputs.begin(), work.inputs.end(), work.outputs[i]) != work.inputs.end();
    aliases_only = aliases_only && alias;
    if (!alias) bytes += bytes_of(work.outputs[i]);
  }
  std::vector<TensorRef> inputs;
  bool constant = true;
  const bool shape_only = has_trait(node.op, kReadsShape);
  for (ValueId id : node.inputs) {
    inputs.push_back(id == kNoValue ? nullptr : graph.values[id].constant);
    constant = constant && (id == kNoValue || inputs.back() != nullptr);
  }
  if (!constant && !shape_only) return {};

  const auto set = [&](size_t i, TensorRef tensor) {
    if (node.outputs[i] != kNoValue) graph.values[node.outputs[i]].constant = std::move(tensor);
  };
  if (repeats_elements(node, work, bytes)) return {};
  const bool cheap = is_fill(node.op) || (has_trait(node.op, kReshapes) && !aliases_only);
  if (bytes > (cheap ? limits.max_fill_bytes : limits.max_bytes)) return {};
  const bool costly = !cheap && !aliases_only && evaluation_cost(work.workload) > limits.max_cost;
  const std::optional<RoutineUse> routine = costly && constant ? routine_of(graph, node) : std::nullopt;
  if (costly && !routine) return {};
  if (bytes > limits.constant_bytes_left) {
    if (!limits.fail_when_exhausted) return {};
    return Error{ErrorCode::kResourceExhausted, node.name,
                 node.op + ": the model's constants take too much memory"};
  }
  limits.constant_bytes_left -= bytes;
  if (routine) {
    TS_ASSIGN_OR_RETURN(std::vector<TensorRef> results, run_routine(graph, node, *routine, inputs));
    for (size_t i = 0; i < results.size(); ++i) set(i, std::move(results[i]));
    return {};
  }
  if (cheap) {
    set(0, is_fill(node.op) ? fill(node, work.outputs[0]) : with_shape(*inputs[0], work.outputs[0]->shape));
    return {};
  }
  if (shape_only) {
    // Only the shape of the input matters; its contents may be unknown.
    ir::Workload own = work.workload;
    own.operations.assign(1, work.workload.operations.back());
    TS_ASSIGN_OR_RETURN(std::vector<lower::Tensor> result, lower::evaluate(own, {}));
    set(0, std::make_shared<const lower::Tensor>(std::move(result[0])));
    return {};
  }
  TS_ASSIGN_OR_RETURN(std::vector<TensorRef> results, evaluate_node(work, inputs));
  for (size_t i = 0; i < results.size(); ++i) set(i, std::move(results[i]));
  return {};
}

}  // namespace tensorsmith::graph
