// Quantized outputs may differ by one step, others may not.
#include "engine/model/quantization_step.h"

#include <gtest/gtest.h>

#include "../graph/onnx_model_builder.h"
#include "engine/model/output_check.h"

namespace tensorsmith::engine::quantization_step_test {
namespace {

using graph::testing::ModelBuilder;

graph::Graph import(const ModelBuilder& builder) {
  return graph::import_onnx_bytes(builder.bytes(), {}, "test").value();
}

TEST(QuantizationSteps, FollowMovesToTheLastQuantization) {
  ModelBuilder builder;
  builder.input("x", {2, 3})
      .output("integers")
      .output("floats")
      .output("plain")
      .output("sums")
      .output("largest")
      .initializer("scale", {}, {0.25F})
      .raw("zero", {}, 3, std::string(1, '\0'))
      .node("QuantizeLinear", {"x", "scale", "zero"}, {"q"})
      .node("Transpose", {"q"}, {"integers"})
      .node("DequantizeLinear", {"q", "scale", "zero"}, {"d"})
      .node("Relu", {"d"}, {"r"})
      .node("Transpose", {"r"}, {"floats"})
      .node("Exp", {"x"}, {"plain"})
      .node("Add", {"d", "d"}, {"sums"})
      .node("ReduceMax", {"d"}, {"largest"});
  EXPECT_EQ(quantization_steps(import(builder)), (std::vector<double>{1, 0.25, 0, 0, 0.25}));
}

// MaxPool's indices have no step, although its maxima do; all outputs of Split have their input's
// step.
TEST(QuantizationSteps, SecondOutputs) {
  ModelBuilder builder;
  builder.input("x", {1, 2, 4, 4})
      .output("maxima")
      .output("indices")
      .output("first")
      .output("second")
      .initializer("scale", {}, {0.25F})
      .raw("zero", {}, 3, std::string(1, '\0'))
      .node("QuantizeLinear", {"x", "scale", "zero"}, {"q"})
      .node("DequantizeLinear", {"q", "scale", "zero"}, {"d"})
      .node("MaxPool", {"d"}, {"maxima", "indices"})
      .ints("kernel_shape", {2, 2})
      .node("Split", {"d"}, {"first", "second"})
      .integer("axis", 1);
  EXPECT_EQ(quantization_steps(import(builder)), (std::vector<double>{0.25, 0, 0.25, 0.25}));
}

lower::Tensor tensor(const std::vector<float>& values) {
  auto out = lower::Tensor::zeros(ir::DType::kF32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    out.set(static_cast<int64_t>(i), ir::scalar_float(ir::DType::kF32, static_cast<double>(values[i])));
  return out;
}

TEST(QuantizationSteps, OneStepAgreesAndTwoDoNot) {
  const lower::Tensor expected = tensor({1, 2, 3});
  const Tolerance plain, quantized{1e-3, 1e-4, 0.25};
  EXPECT_FALSE(compare(tensor({1, 2.25F, 3}), expected, plain).ok);
  const Comparison one = compare(tensor({1, 2.25F, 3}), expected, quantized);
  EXPECT_TRUE(one.ok);
  EXPECT_EQ(one.one_step, 1);
  EXPECT_EQ(one.wrong, 0);
  const Comparison two = compare(tensor({1, 2.5F, 3}), expected, quantized);
  EXPECT_FALSE(two.ok);
  EXPECT_EQ(two.wrong, 1);
}

// A wrong zero point or truncation changes most elements by one step; rounding differences change
// few.
TEST(QuantizationSteps, ManyElementsOneStepOffAreWrong) {
  const std::vector<float> values(100, 1);
  std::vector<float> few = values, many = values;
  for (size_t i = 0; i < 10; ++i) few[i] += 0.25F;
  for (size_t i = 0; i < 11; ++i) many[i] += 0.25F;
  const Tolerance quantized{1e-3, 1e-4, 0.25};
  EXPECT_TRUE(compare(tensor(few), tensor(values), quantized).ok);
  const Comparison off = compare(tensor(many), tensor(values), quantized);
  EXPECT_FALSE(off.ok);
  EXPECT_EQ(off.wrong, 11);
  EXPECT_NE(off.detail.find("to be explained by rounding"), std::string::npos) << off.detail;
}

}  // namespace
}  // namespace tensorsmith::engine::quantization_step_test
