// Input: mutated ONNX models. They are imported, or refused with an Error, without a crash, a hang or
// much memory.
//
// Half of the mutations change bytes. The others parse the model and change what a checker would look at:
// operators, attributes, dimensions, dtypes, the wiring, and constants that give shapes.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>

#include "graph/emit.h"
#include "graph/evaluate.h"
#include "onnx/onnx_pb.h"

using tensorsmith::graph::Graph;
using tensorsmith::graph::ImportOptions;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ImportOptions options;
  options.max_constant_bytes = int64_t{32} << 20;
  auto graph = tensorsmith::graph::import_onnx_bytes(
      std::string_view(reinterpret_cast<const char*>(data), size), options, "fuzz.onnx");
  if (!graph.ok()) return 0;
  tensorsmith::graph::OptimizeOptions limits;
  limits.max_fold_cost = 1 << 12;
  limits.max_constant_bytes = int64_t{32} << 20;
  if (!tensorsmith::graph::optimize(*graph, limits).ok()) return 0;
  const auto workload = tensorsmith::graph::graph_workload(*graph);
  // The workload of an accepted model must be valid.
  if (workload.ok()) {
    const auto status = tensorsmith::ir::verify(workload->workload);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.error().message().c_str());
      __builtin_trap();
    }
  }
  return 0;
}

namespace {

int64_t interesting(std::mt19937& rng) {
  static constexpr int64_t kValues[] = {0,  1,   -1,  2,   -2,   3,     7,         8,         16,
                                        64, 127, 255, 256, 1024, 65536, INT32_MAX, INT64_MAX, INT64_MIN};
  return kValues[rng() % std::size(kValues)];
}

template <class Repeated>
auto* pick(Repeated* items, std::mt19937& rng) {
  return items->size() == 0 ? nullptr
                            : items->Mutable(static_cast<int>(rng() % static_cast<unsigned>(items->size())));
}

void mutate_tensor(onnx::TensorProto& tensor, std::mt19937& rng) {
  switch (rng() % 4) {
    case 0:
      if (tensor.dims_size() > 0) {
        tensor.set_dims(static_cast<int>(rng() % static_cast<unsigned>(tensor.dims_size())),
                        interesting(rng));
      } else {
        tensor.add_dims(interesting(rng));
      }
      break;
    case 1:
      tensor.set_data_type(static_cast<int>(rng() % 18));
      break;
    case 2:
      if (tensor.int64_data_size() > 0) {
        tensor.set_int64_data(static_cast<int>(rng() % static_cast<unsigned>(tensor.int64_data_size())),
                              interesting(rng));
      } else if (tensor.raw_data().size() >= 8) {
        const int64_t value = interesting(rng);
        const size_t at = rng() % (tensor.raw_data().size() / 8) * 8;
        tensor.mutable_raw_data()->replace(at, 8, reinterpret_cast<const char*>(&value), 8);
      }
      break;
    default:
      if (!tensor.raw_data().empty())
        (*tensor.mutable_raw_data())[rng() % tensor.raw_data().size()] ^= static_cast<char>(1 << (rng() % 8));
      break;
  }
}

void mutate_node(onnx::GraphProto& graph, std::mt19937& rng) {
  onnx::NodeProto* node = pick(graph.mutable_node(), rng);
  if (node == nullptr) return;
  onnx::NodeProto* other = pick(graph.mutable_node(), rng);
  switch (rng() % 6) {
    case 0:
      node->set_op_type(other->op_type());
      break;
    case 1:
      if (node->input_size() > 0 && other->output_size() > 0) {
        node->set_input(static_cast<int>(rng() % static_cast<unsigned>(node->input_size())),
                        other->output(0));
      }
      break;
    case 2:
      if (node->input_size() > 0 && other->input_size() > 0) {
        node->set_input(static_cast<int>(rng() % static_cast<unsigned>(node->input_size())), other->input(0));
      }
      break;
    case 3:
      if (node->input_size() > 0) node->mutable_input()->RemoveLast();
      break;
    default: {
      onnx::AttributeProto* attribute = pick(node->mutable_attribute(), rng);
      if (attribute == nullptr) {
        if (onnx::AttributeProto* foreign = pick(other->mutable_attribute(), rng))
          *node->add_attribute() = *foreign;
      } else if (rng() % 8 == 0) {
        attribute->set_type(static_cast<onnx::AttributeProto::AttributeType>(rng() % 9));
      } else if (attribute->ints_size() > 0 && rng() % 4 != 0) {
        attribute->set_ints(static_cast<int>(rng() % static_cast<unsigned>(attribute->ints_size())),
                            interesting(rng));
      } else if (attribute->has_t()) {
        mutate_tensor(*attribute->mutable_t(), rng);
      } else {
        attribute->set_i(interesting(rng));
        attribute->set_f(static_cast<float>(interesting(rng)));
        attribute->add_ints(interesting(rng));
      }
      break;
    }
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937 rng(seed);
  onnx::ModelProto model;
  if (rng() % 2 == 0 || !model.ParsePartialFromArray(data, static_cast<int>(size)) || !model.has_graph()) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  onnx::GraphProto& graph = *model.mutable_graph();
  for (unsigned i = 0; i <= rng() % 3; ++i) {
    switch (rng() % 6) {
      case 0:
        if (onnx::TensorProto* tensor = pick(graph.mutable_initializer(), rng)) mutate_tensor(*tensor, rng);
        break;
      case 1:
        if (onnx::ValueInfoProto* input = pick(graph.mutable_input(), rng)) {
          auto* type = input->mutable_type()->mutable_tensor_type();
          if (rng() % 4 == 0) {
            type->set_elem_type(static_cast<int>(rng() % 18));
          } else if (auto* dim = pick(type->mutable_shape()->mutable_dim(), rng)) {
            dim->set_dim_value(interesting(rng));
          } else {
            type->mutable_shape()->add_dim()->set_dim_value(interesting(rng));
          }
        }
        break;
      case 2:
        if (model.opset_import_size() > 0) model.mutable_opset_import(0)->set_version(1 + rng() % 20);
        break;
      default:
        mutate_node(graph, rng);
        break;
    }
  }
  std::string bytes;
  if (!model.SerializePartialToString(&bytes) || bytes.size() > max_size || bytes.empty()) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  bytes.copy(reinterpret_cast<char*>(data), bytes.size());
  return bytes.size();
}
