// The inputs and attributes that each version of an operator takes, and inputs that become constants.
#include "graph/onnx/operator_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/evaluate.h"
#include "onnx_model_builder.h"

namespace tensorsmith::graph::operator_versions_test {
namespace {

using ::testing::HasSubstr;
using testing::ModelBuilder;

std::string fault(std::string_view op, int opset, int inputs, int outputs,
                  const std::vector<std::string_view>& attributes) {
  return not_taken(op, opset, {inputs, outputs, attributes});
}

TEST(OperatorVersions, AttributesInputsAndOutputsAreThoseOfTheVersion) {
  EXPECT_EQ(fault("Softmax", 13, 1, 1, {"axis"}), "");
  EXPECT_EQ(fault("Softmax", 13, 1, 1, {"axis", "temperature"}),
            "Softmax of opset 13 has no attribute 'temperature'");
  EXPECT_EQ(fault("Softmax", 13, 1, 1, {"axes"}), "Softmax of opset 13 has no attribute 'axes'");
  EXPECT_EQ(fault("Softmax", 13, 1, 1, {"__exporter"}), "");
  // The bounds of Clip became inputs in opset 11.
  EXPECT_EQ(fault("Clip", 6, 1, 1, {"min", "max"}), "");
  EXPECT_EQ(fault("Clip", 11, 3, 1, {}), "");
  EXPECT_EQ(fault("Clip", 6, 3, 1, {}), "Clip of opset 6 has at most 1 input, the node has 3");
  EXPECT_EQ(fault("Clip", 11, 1, 1, {"min"}), "Clip of opset 11 has no attribute 'min'");
  EXPECT_EQ(fault("Relu", 14, 1, 2, {}), "Relu of opset 14 has at most 1 output, the node has 2");
  EXPECT_EQ(fault("Concat", 13, 500, 1, {"axis"}), "");  // any number
  EXPECT_EQ(fault("SpaceToDepth", 13, 1, 1, {"blocksize", "mode"}),
            "SpaceToDepth of opset 13 has no attribute 'mode'");
  EXPECT_EQ(fault("SpaceToDepth", 28, 1, 1, {"blocksize", "mode"}), "");
  // An operator that is newer than the opset, and one that ONNX does not define.
  EXPECT_EQ(fault("GridSample", 11, 2, 1, {"mode"}), "");
  EXPECT_EQ(fault("com.example.Thing", 11, 9, 9, {"anything"}), "");
}

TEST(OperatorVersions, ANodeWithAnUnknownAttributeIsRefused) {
  ModelBuilder model(17);
  model.input("x", {2, 3}).output("y").node("Softmax", {"x"}, {"y"}).integer("temperature", 2);
  const auto graph = model.import();
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(graph.error().message(), HasSubstr("Softmax of opset 17 has no attribute 'temperature'"));
}

TEST(OperatorVersions, AnOpsetBeyondTheNewestIsReadAsTheNewestWithANote) {
  ModelBuilder newest(kNewestOpset), newer(kNewestOpset + 1);
  for (ModelBuilder* model : {&newest, &newer})
    model->input("x", {2, 3}).output("y").node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(newest.import()->notes.empty());
  const auto graph = newer.import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  ASSERT_EQ(graph->notes.size(), 1u);
  EXPECT_THAT(graph->notes[0], HasSubstr("uses ONNX opset " + std::to_string(kNewestOpset + 1)));
}

// Returns the output of the model for options that fix all inputs.
Result<std::vector<lower::Tensor>> run_with(const ModelBuilder& model, const ImportOptions& options) {
  auto graph = model.import(options);
  if (!graph.ok()) return graph.error();
  EXPECT_TRUE(graph->inputs.empty());
  return evaluate(*graph, {});
}

TEST(FixedInputs, TextBecomesAConstantOfTheDeclaredTypeAndShape) {
  ModelBuilder model(17);
  model.input("x", {2, 2}).input("s", {-1}, 7).output("y").node("Reshape", {"x", "s"}, {"y"});
  ImportOptions options;
  options.constant_texts = {{"x", "1,-2.5,1e3,4"}, {"s", "4,1"}};
  const auto outputs = run_with(model, options);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  EXPECT_EQ(outputs->front().shape, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(outputs->front().at(1).f, -2.5);
  EXPECT_EQ(outputs->front().at(2).f, 1000);
  // One number fills the input.
  options.constant_texts["x"] = "7";
  EXPECT_EQ(run_with(model, options)->front().at(3).f, 7);
}

TEST(FixedInputs, TextThatDoesNotFitIsAnErrorThatNamesTheInput) {
  ModelBuilder model(17);
  model.input("x", {2, 2}).input("s", {2}, 7).output("y").node("Reshape", {"x", "s"}, {"y"});
  const auto error_of = [&](const std::string& name, const std::string& text) {
    ImportOptions options;
    options.constant_texts[name] = text;
    const auto graph = model.import(options);
    EXPECT_FALSE(graph.ok()) << name << "=" << text;
    return graph.ok() ? std::string() : graph.error().message();
  };
  EXPECT_THAT(error_of("x", "1,2,3"),
              HasSubstr("the given contents of input 'x': 3 numbers are given, the input has 4"));
  EXPECT_THAT(error_of("x", "1,,2,3"), HasSubstr("'' is no value of type f32"));
  EXPECT_THAT(error_of("x", "1,2,3,4,"), HasSubstr("ends with a comma"));
  EXPECT_THAT(error_of("x", "true"), HasSubstr("'true' is no value of type f32"));
  EXPECT_THAT(error_of("s", "2.5"), HasSubstr("'2.5' is no value of type i64"));
  EXPECT_THAT(error_of("t", "1"),
              HasSubstr("contents are given for 't', but the model has no input of this name"));
}

}  // namespace
}  // namespace tensorsmith::graph::operator_versions_test
