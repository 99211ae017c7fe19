#include "graph/onnx/expand.h"

#include "graph/ops/registry.h"

namespace tensorsmith::graph {

Result<std::vector<ValueId>> Expansion::ops(const std::string& op, std::vector<ValueId> inputs,
                                            size_t outputs, std::map<std::string, Attribute> attributes) {
  constexpr int kOpset = 18;
  Node node{node_.name + "/" + op + "_" + std::to_string(made_++),
            op,
            kOpset,
            std::move(attributes),
            std::move(inputs),
            {}};
  const ExpandEntry* entry = find_expanded_operator(op);
  if (entry != nullptr && find_operator(op) == nullptr) return expand(*entry, std::move(node), outputs);
  return sink_.add(std::move(node), outputs);
}

Result<std::vector<ValueId>> Expansion::expand(const ExpandEntry& entry, Node node, size_t outputs) {
  node.outputs.assign(outputs, ValueId(0));  // wanted; which values they are is known afterwards
  WorkloadBuilder builder;
  std::vector<ir::Buffer> buffers;
  for (const ValueId id : node.inputs)
    buffers.push_back(id == kNoValue ? nullptr : builder.placeholder("in", dtype(id), shape(id), false));
  OpContext context(sink_.graph(), node, buffers, builder);
  TS_RETURN_IF_ERROR(check_signature(context, entry.signature));
  Expansion inner(sink_, node, context);
  auto values = entry.expand(inner);
  if (values.ok() && context.error()) return *context.error();
  return values;
}

Result<ValueId> Expansion::op(const std::string& op, std::vector<ValueId> inputs,
                              std::map<std::string, Attribute> attributes) {
  TS_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                      ops(op, std::move(inputs), 1, std::move(attributes)));
  return outputs[0];
}

ValueId Expansion::ints(const std::vector<int64_t>& values) {
  return constant(vector_of(ir::DType::kI64, values));
}

ValueId Expansion::scalar(ir::DType dtype, double value) {
  lower::Tensor tensor = lower::Tensor::zeros(dtype, {});
  tensor.set(0, ir::is_float(dtype) ? ir::scalar_float(dtype, value)
                                    : ir::scalar_int(dtype, static_cast<int64_t>(value)));
  return constant(std::move(tensor));
}

Result<std::vector<ValueId>> Expansion::loop(std::shared_ptr<const Region> region,
                                             std::vector<ValueId> inputs) {
  const size_t outputs = region->states + region->results_backwards.size();
  Node node{node_.name + "/Loop_" + std::to_string(made_++), kLoopOperator, 0, {}, std::move(inputs), {}};
  node.region = std::move(region);
  return sink_.add(std::move(node), outputs);
}

Result<ValueId> Expansion::reshape(ValueId id, const Shape& shape) {
  if (this->shape(id) == shape) return id;
  return op("Reshape", {id, ints(shape)}, {{"allowzero", int64_t{1}}});
}

Result<ValueId> Expansion::transpose(ValueId id, std::vector<int64_t> permutation) {
  return op("Transpose", {id}, {{"perm", std::move(permutation)}});
}

Result<ValueId> Expansion::slice(ValueId id, int64_t axis, int64_t begin, int64_t end) {
  return op("Slice", {id, ints({begin}), ints({end}), ints({axis})});
}

Result<ValueId> Expansion::cast(ValueId id, ir::DType dtype) {
  if (this->dtype(id) == dtype) return id;
  return op("Cast", {id}, {{"to", row_of(dtype).onnx}});
}

const ExpandEntry* find_expanded_operator(std::string_view op) {
  for (const auto& family :
       {attention_expansions(), contributed_attention_expansions(), contributed_expansions(),
        einsum_expansions(), quantized_expansions(), recurrent_expansions(), signal_expansions(),
        state_expansions(), text_expansions()}) {
    for (const ExpandEntry& entry : family)
      if (entry.op == op) return &entry;
  }
  return nullptr;
}

}  // namespace tensorsmith::graph
