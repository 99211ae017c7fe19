// Real models of tests/data/models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/onnx/declared.h"
#include "onnx_testdata.h"

namespace tensorsmith::graph::models_test {
namespace {

const std::filesystem::path kModels = TENSORSMITH_TEST_MODELS;

class Models : public ::testing::TestWithParam<const char*> {};

// Every model can be imported; its inputs and outputs have the dtypes and shapes of its test data.
TEST_P(Models, Imports) {
  const auto folder = kModels / GetParam();
  const auto data = testing::read_data_set(folder / "test_data_set_0", folder / "model.onnx");
  ASSERT_TRUE(data.ok()) << data.error().message();
  const auto names = onnx_declared((folder / "model.onnx").string());
  ASSERT_TRUE(names.ok()) << names.error().message();
  ImportOptions options;
  for (size_t i = 0; i < data->inputs.size(); ++i)
    options.shapes[names->inputs[i].name] = data->inputs[i].shape;
  const auto graph = import_onnx((folder / "model.onnx").string(), options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  ASSERT_EQ(graph->inputs.size(), data->inputs.size());
  ASSERT_EQ(graph->outputs.size(), data->outputs.size());
  for (size_t i = 0; i < graph->outputs.size(); ++i) {
    const Value& value = graph->values[graph->outputs[i]];
    EXPECT_EQ(value.shape, data->outputs[i].shape) << value.name;
    EXPECT_EQ(value.dtype, data->outputs[i].dtype) << value.name;
  }
  Graph optimized = *graph;
  const Status status = optimize(optimized);
  ASSERT_TRUE(status.ok()) << status.error().message();
  EXPECT_LE(optimized.nodes.size(), graph->nodes.size());
  for (const Node& node : optimized.nodes) EXPECT_NE(node.op, "BatchNormalization");
  for (size_t i = 0; i < graph->outputs.size(); ++i) {
    EXPECT_EQ(optimized.values[optimized.outputs[i]].name, graph->values[graph->outputs[i]].name);
  }
  const auto workload = graph_workload(optimized);
  ASSERT_TRUE(workload.ok()) << workload.error().message();
  const Status verified = ir::verify(workload->workload);
  EXPECT_TRUE(verified.ok()) << verified.error().message();
}

INSTANTIATE_TEST_SUITE_P(All, Models,
                         ::testing::Values("fastestdet", "light_bvlc_alexnet", "light_inception_v1",
                                           "light_resnet50", "light_shufflenet", "light_squeezenet",
                                           "light_vgg19", "mnist_8", "super_resolution_10",
                                           "ultraface_rfb320"));

TEST(ModelOutputs, Mnist) {
  const auto folder = kModels / "mnist_8";
  const auto graph = import_onnx((folder / "model.onnx").string(), {});
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  for (int set = 0; set < 3; ++set) {
    const auto data =
        testing::read_data_set(folder / ("test_data_set_" + std::to_string(set)), folder / "model.onnx");
    ASSERT_TRUE(data.ok()) << data.error().message();
    const auto outputs = evaluate(*graph, data->inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    EXPECT_EQ(testing::difference((*outputs)[0], data->outputs[0], 1e-3, 1e-4), "");
    Graph optimized = *graph;
    ASSERT_TRUE(optimize(optimized).ok());
    const auto again = evaluate(optimized, data->inputs);
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(testing::difference((*again)[0], data->outputs[0], 1e-3, 1e-4), "");
  }
}

// Single output pixels computed through the whole network, before and after the passes.
class ModelPoints : public ::testing::TestWithParam<const char*> {};

TEST_P(ModelPoints, Match) {
  const auto folder = kModels / GetParam();
  const auto data = testing::read_data_set(folder / "test_data_set_0", folder / "model.onnx");
  ASSERT_TRUE(data.ok()) << data.error().message();
  const auto names = onnx_declared((folder / "model.onnx").string());
  ASSERT_TRUE(names.ok());
  ImportOptions options;
  for (size_t i = 0; i < data->inputs.size(); ++i)
    options.shapes[names->inputs[i].name] = data->inputs[i].shape;
  auto graph = import_onnx((folder / "model.onnx").string(), options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  for (const bool optimized : {false, true}) {
    if (optimized) {
      ASSERT_TRUE(optimize(*graph).ok());
    }
    const auto workload = graph_workload(*graph);
    ASSERT_TRUE(workload.ok()) << workload.error().message();
    std::vector<lower::Tensor> inputs;
    for (ValueId id : workload->inputs) {
      const Value& value = graph->values[id];
      const auto at = std::find(graph->inputs.begin(), graph->inputs.end(), id) - graph->inputs.begin();
      inputs.push_back(value.constant != nullptr ? *value.constant : data->inputs[static_cast<size_t>(at)]);
    }
    for (size_t i = 0; i < data->outputs.size(); ++i) {
      const lower::Tensor& expected = data->outputs[i];
      const std::vector<int64_t> points = {0, expected.num_elements() / 2, expected.num_elements() - 1};
      const auto values = lower::evaluate_points(workload->workload, inputs, i, points);
      ASSERT_TRUE(values.ok()) << values.error().message();
      for (size_t k = 0; k < points.size(); ++k) {
        const double want = expected.at(points[k]).f;
        EXPECT_NEAR((*values)[k].f, want, 1e-4 + 1e-3 * std::abs(want)) << "element " << points[k];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Small, ModelPoints, ::testing::Values("mnist_8", "super_resolution_10"));

}  // namespace
}  // namespace tensorsmith::graph::models_test
