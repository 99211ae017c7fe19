#include "graph/emit.h"

#include <cctype>

#include "graph/ops/registry.h"

namespace tensorsmith::graph {

ir::Buffer WorkloadBuilder::placeholder(const std::string& name, ir::DType dtype, std::vector<int64_t> shape,
                                        bool is_constant) {
  operations_.push_back(ir::placeholder(unique_name(name), dtype, std::move(shape), is_constant));
  return operations_.back()->output();
}

ir::Buffer WorkloadBuilder::compute(const std::string& name, std::vector<ir::Axis> spatial,
                                    std::vector<ir::Axis> reduce, ir::Combiner combiner, ir::Expr body) {
  operations_.push_back(
      ir::compute(unique_name(name), std::move(spatial), std::move(reduce), combiner, {std::move(body)}));
  return operations_.back()->output();
}

std::vector<ir::Buffer> WorkloadBuilder::compute_pair(const std::string& name, std::vector<ir::Axis> spatial,
                                                      std::vector<ir::Axis> reduce, ir::Combiner combiner,
                                                      ir::Expr value, ir::Expr index) {
  operations_.push_back(ir::compute(unique_name(name), std::move(spatial), std::move(reduce), combiner,
                                    {std::move(value), std::move(index)}));
  return operations_.back()->outputs;
}

// Letters, digits and '_', so that any ONNX name is also one in the text form; taken names get "_1", "_2",
// ...
std::string WorkloadBuilder::unique_name(const std::string& name) {
  std::string base = name.empty() ? "t" : name;
  for (char& c : base) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  if (std::isdigit(static_cast<unsigned char>(base.front())) != 0) base.insert(base.begin(), 't');
  std::string candidate = base;
  for (int i = 1; !names_.insert(candidate).second; ++i) candidate = base + "_" + std::to_string(i);
  return candidate;
}

bool is_supported_operator(const std::string& op) {
  if (op == kMoveOperator) return false;  // ours, unknown to ONNX
  return op == "Constant" || find_operator(op) != nullptr || find_fold_operator(op) != nullptr;
}

Result<std::vector<ir::Buffer>> emit(const Graph& graph, const Node& node, std::span<const ir::Buffer> inputs,
                                     WorkloadBuilder& builder) {
  const OpEntry* entry = find_operator(node.op);
  if (entry == nullptr && find_fold_operator(node.op) != nullptr) {
    return Error{ErrorCode::kUnsupported, node.name,
                 node.op +
                     ": all inputs must be constant, as the result's shape depends on them; they are only "
                     "known at run time"};
  }
  if (entry == nullptr) {
    return Error{ErrorCode::kUnsupported, node.name, "operator " + node.op + " is not supported"};
  }
  OpContext ctx(graph, node, inputs, builder);
  TS_RETURN_IF_ERROR(check_signature(ctx, entry->signature));
  Result<Buffers> result = entry->emit(ctx);
  if (!result.ok()) return result;
  if (ctx.error()) return *ctx.error();
  if (result->size() < node.outputs.size()) {
    return ctx.unsupported("the node has " + std::to_string(node.outputs.size()) + " outputs, only " +
                           std::to_string(result->size()) + " are supported");
  }
  result->resize(node.outputs.size());
  return result;
}

}  // namespace tensorsmith::graph
