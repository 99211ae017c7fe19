#include "onnx_testdata.h"

#include <cmath>

#include "graph/ops/op_context.h"

namespace tensorsmith::graph::testing {

Result<DataSet> read_data_set(const std::filesystem::path& folder) {
  DataSet data;
  for (int i = 0;; ++i) {
    const auto path = folder / ("input_" + std::to_string(i) + ".pb");
    if (!std::filesystem::exists(path)) break;
    TS_ASSIGN_OR_RETURN(lower::Tensor tensor, read_tensor_proto(path.string()));
    data.inputs.push_back(std::move(tensor));
  }
  for (int i = 0;; ++i) {
    const auto path = folder / ("output_" + std::to_string(i) + ".pb");
    if (!std::filesystem::exists(path)) break;
    TS_ASSIGN_OR_RETURN(lower::Tensor tensor, read_tensor_proto(path.string()));
    data.outputs.push_back(std::move(tensor));
  }
  return data;
}

std::string difference(const lower::Tensor& got, const lower::Tensor& expected, double rtol, double atol) {
  if (got.dtype != expected.dtype || got.shape != expected.shape) {
    return describe(got.dtype, got.shape) + " instead of " + describe(expected.dtype, expected.shape);
  }
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const ir::Scalar a = got.at(i);
    const ir::Scalar b = expected.at(i);
    bool same = a.i == b.i;
    if (ir::is_float(expected.dtype)) {
      same = a.f == b.f || (std::isnan(a.f) && std::isnan(b.f)) ||
             (std::isfinite(b.f) && std::abs(a.f - b.f) <= atol + rtol * std::abs(b.f));
    }
    if (same) continue;
    const auto text = [](const ir::Scalar& s) {
      return ir::is_float(s.dtype) ? std::to_string(s.f) : std::to_string(s.i);
    };
    return "element " + std::to_string(i) + " of " + describe(got.dtype, got.shape) + " is " + text(a) +
           " instead of " + text(b);
  }
  return "";
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId id : graph.inputs) names.push_back(graph.values[static_cast<size_t>(id)].name);
  return names;
}

}  // namespace tensorsmith::graph::testing
