// Real models from the data folder beside the repository.
#include <gtest/gtest.h>

#include <cstdlib>

#include "onnx_testdata.h"

namespace tensorsmith::graph {
namespace {

const std::filesystem::path kModels = std::filesystem::path(TENSORSMITH_SOURCE_DIR) / "../shared/data/models";

class Models : public ::testing::TestWithParam<const char*> {};

// Every model imports; its inputs and outputs have the dtypes and shapes of its test data.
TEST_P(Models, Imports) {
  const auto folder = kModels / GetParam();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const auto data = testing::read_data_set(folder / "test_data_set_0");
  ASSERT_TRUE(data.ok()) << data.error().message();
  const auto names = onnx_input_names((folder / "model.onnx").string());
  ASSERT_TRUE(names.ok()) << names.error().message();
  ImportOptions options;
  for (size_t i = 0; i < data->inputs.size(); ++i) options.shapes[(*names)[i]] = data->inputs[i].shape;
  const auto graph = import_onnx((folder / "model.onnx").string(), options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  ASSERT_EQ(graph->inputs.size(), data->inputs.size());
  ASSERT_EQ(graph->outputs.size(), data->outputs.size());
  for (size_t i = 0; i < graph->outputs.size(); ++i) {
    const Value& value = graph->values[static_cast<size_t>(graph->outputs[i])];
    EXPECT_EQ(value.shape, data->outputs[i].shape) << value.name;
    EXPECT_EQ(value.dtype, data->outputs[i].dtype) << value.name;
  }
  const auto workload = graph_workload(*graph);
  ASSERT_TRUE(workload.ok()) << workload.error().message();
  const Status verified = ir::verify(workload->workload);
  EXPECT_TRUE(verified.ok()) << verified.error().message();
}

INSTANTIATE_TEST_SUITE_P(All, Models,
                         ::testing::Values("fastestdet", "light_bvlc_alexnet", "light_inception_v1",
                                           "light_resnet50", "light_shufflenet", "light_squeezenet",
                                           "light_vgg19", "mnist_8", "subpixel", "super_resolution_10",
                                           "ultraface_rfb320"));

TEST(ModelOutputs, Mnist) {
  const auto folder = kModels / "mnist_8";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const auto graph = import_onnx((folder / "model.onnx").string(), {});
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  for (int set = 0; set < 3; ++set) {
    const auto data = testing::read_data_set(folder / ("test_data_set_" + std::to_string(set)));
    ASSERT_TRUE(data.ok()) << data.error().message();
    const auto outputs = evaluate(*graph, data->inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    EXPECT_EQ(testing::difference((*outputs)[0], data->outputs[0], 1e-3, 1e-3), "");
  }
}

}  // namespace
}  // namespace tensorsmith::graph
