// Quantized convolutions and products that become one operator, compared with the unfused graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ops/op_context.h"
#include "graph/passes/passes.h"
#include "graph_builder.h"

namespace tensorsmith::graph::fuse_quantized_test {
namespace {

using ::testing::ElementsAre;
using testing::GraphBuilder;
using testing::ops;

lower::Tensor bytes(ir::DType dtype, Shape shape, Rng& rng) {
  lower::Tensor tensor = lower::Tensor::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set(i, ir::scalar_int(
                      dtype, dtype == ir::DType::kI8 ? rng.uniform_int(-128, 127) : rng.uniform_int(0, 255)));
  return tensor;
}

ValueId one(GraphBuilder& b, ir::DType dtype, int64_t value) {
  lower::Tensor tensor = lower::Tensor::zeros(dtype, {});
  tensor.set(0, ir::scalar_int(dtype, value));
  return b.constant(std::move(tensor));
}

// Sums of integers are exact, those of floats are rounded: near the middle between two steps, the
// results differ by one step.
void expect_same_steps(const Graph& before, const Graph& after, Rng& rng) {
  ASSERT_TRUE(verify_graph(after).ok()) << verify_graph(after).error().message();
  std::vector<lower::Tensor> inputs;
  for (ValueId id : before.inputs) {
    const Value& value = before.values[id];
    inputs.push_back(bytes(value.dtype, value.shape, rng));
  }
  const auto expected = evaluate(before, inputs);
  const auto got = evaluate(after, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message();
  ASSERT_TRUE(got.ok()) << got.error().message();
  const lower::Tensor& want = (*expected)[0];
  int64_t different = 0, distinct = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const int64_t difference = std::abs((*got)[0].at(i).i - want.at(i).i);
    ASSERT_LE(difference, 1) << "element " << i;
    different += difference;
    distinct += want.at(i).i != want.at(0).i ? 1 : 0;
  }
  EXPECT_LE(different * 100, want.num_elements());
  EXPECT_GT(distinct * 2, want.num_elements());
}

TEST(FuseQuantized, ConvolutionWithBiasAndRelu) {
  for (const bool relu : {false, true}) {
    for (const ir::DType dtype : {ir::DType::kU8, ir::DType::kI8}) {
      Rng rng(5);
      GraphBuilder b;
      const int64_t lowest = dtype == ir::DType::kI8 ? -128 : 0;
      const ValueId x = b.node("DequantizeLinear", {b.input({1, 5, 7, 7}, dtype), b.floats({}, {0.05}),
                                                    one(b, dtype, lowest + 100)});
      const ValueId scales = b.floats({3}, {0.01, 0.02, 0.03});
      const ValueId w = b.node("DequantizeLinear",
                               {b.constant(bytes(ir::DType::kI8, {3, 5, 3, 3}, rng)), scales,
                                b.constant(lower::Tensor::zeros(ir::DType::kI8, {3}))},
                               {{"axis", int64_t{0}}});
      lower::Tensor bias = lower::Tensor::zeros(ir::DType::kI32, {3});
      for (int64_t c = 0; c < 3; ++c) bias.set(c, ir::scalar_int(ir::DType::kI32, 4000 * c - 3000));
      const ValueId bias_scales = b.floats({3}, {0.05 * 0.01, 0.05 * 0.02, 0.05 * 0.03});
      const ValueId added =
          b.node("DequantizeLinear", {b.constant(bias), bias_scales}, {{"axis", int64_t{0}}});
      ValueId y = b.node("Conv", {x, w, added}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
      if (relu) y = b.node("Relu", {y});
      y = b.node("QuantizeLinear", {y, b.floats({}, {0.8}), one(b, dtype, relu ? lowest : lowest + 120)});
      const Graph before = b.finish({y});
      Graph after = before;
      fuse_quantized(after);
      eliminate_dead_nodes(after);
      EXPECT_THAT(ops(after), ElementsAre("QLinearConv"));
      const ValueId zero = after.nodes[NodeId(0)].inputs[5];  // zero point of the weights
      EXPECT_TRUE(after.values[zero].shape.empty());
      expect_same_steps(before, after, rng);
    }
  }
}

TEST(FuseQuantized, MatrixProduct) {
  Rng rng(6);
  GraphBuilder b;
  const ValueId x = b.node("DequantizeLinear", {b.input({6, 20}, ir::DType::kU8), b.floats({}, {0.05})});
  const ValueId w =
      b.node("DequantizeLinear",
             {b.constant(bytes(ir::DType::kU8, {20, 4}, rng)), b.floats({4}, {0.01, 0.02, 0.03, 0.04}),
              b.constant(bytes(ir::DType::kU8, {4}, rng))},
             {{"axis", int64_t{1}}});
  const ValueId y =
      b.node("QuantizeLinear", {b.node("MatMul", {x, w}), b.floats({}, {1.5}), one(b, ir::DType::kI8, 3)});
  const Graph before = b.finish({y});
  Graph after = before;
  fuse_quantized(after);
  eliminate_dead_nodes(after);
  EXPECT_THAT(ops(after), ElementsAre("QLinearMatMul"));
  expect_same_steps(before, after, rng);
}

TEST(FuseQuantized, GemmWithBias) {
  for (const bool transposed : {false, true}) {
    Rng rng(8);
    GraphBuilder b;
    const ValueId x = b.node("DequantizeLinear", {b.input({6, 20}, ir::DType::kU8), b.floats({}, {0.05}),
                                                  one(b, ir::DType::kU8, 90)});
    const ValueId w = b.node(
        "DequantizeLinear",
        {b.constant(bytes(ir::DType::kI8,
                          transposed ? std::vector<int64_t>{4, 20} : std::vector<int64_t>{20, 4}, rng)),
         b.floats({4}, {0.01, 0.02, 0.03, 0.04}), b.constant(lower::Tensor::zeros(ir::DType::kI8, {4}))},
        {{"axis", int64_t{transposed ? 0 : 1}}});
    const ValueId sum = b.node("Gemm", {x, w, b.floats({4}, {-20.0, 5.0, 0.0, 11.0})},
                               {{"transB", int64_t{transposed ? 1 : 0}}});
    const ValueId y = b.node("QuantizeLinear", {sum, b.floats({}, {1.5}), one(b, ir::DType::kI8, 3)});
    const Graph before = b.finish({y});
    Graph after = before;
    fuse_quantized(after);
    eliminate_dead_nodes(after);
    EXPECT_THAT(ops(after), ElementsAre("QLinearMatMul"));
    expect_same_steps(before, after, rng);
  }
}

// A factor, a transposed A, and a bias with one value per row.
TEST(FuseQuantized, LeavesOtherGemms) {
  for (int kind = 0; kind < 3; ++kind) {
    Rng rng(9);
    GraphBuilder b;
    const ValueId x = b.node("DequantizeLinear", {b.input({4, 4}, ir::DType::kU8), b.floats({}, {0.05})});
    const ValueId w =
        b.node("DequantizeLinear", {b.constant(bytes(ir::DType::kI8, {4, 4}, rng)), b.floats({}, {0.01})});
    const ValueId added = kind == 2 ? b.floats({4, 1}, {1, 2, 3, 4}) : b.floats({4}, {1, 2, 3, 4});
    std::map<std::string, Attribute> attributes;
    if (kind == 0) attributes["alpha"] = 2.0;
    if (kind == 1) attributes["transA"] = int64_t{1};
    const ValueId y = b.node("QuantizeLinear", {b.node("Gemm", {x, w, added}, attributes),
                                                b.floats({}, {0.8}), one(b, ir::DType::kU8, 0)});
    Graph graph = b.finish({y});
    const auto before = ops(graph);
    fuse_quantized(graph);
    EXPECT_EQ(ops(graph), before) << kind;
  }
}

// A scale that is known only at run time, one per input channel, a second reader of the sum, and a
// Relu that the zero point does not imply.
TEST(FuseQuantized, LeavesOthers) {
  for (int kind = 0; kind < 4; ++kind) {
    Rng rng(7);
    GraphBuilder b;
    const ValueId data = b.input({1, 5, 7, 7}, ir::DType::kU8);
    const ValueId x = b.node("DequantizeLinear", {data, kind == 0 ? b.input({}) : b.floats({}, {0.05})});
    const ValueId w = b.node("DequantizeLinear",
                             {b.constant(bytes(ir::DType::kI8, {3, 5, 3, 3}, rng)),
                              kind == 1 ? b.floats({5}, {1, 2, 3, 4, 5}) : b.floats({}, {0.01})},
                             {{"axis", int64_t{1}}});
    ValueId sum = b.node("Conv", {x, w});
    std::vector<ValueId> outputs;
    if (kind == 2) outputs.push_back(sum);
    if (kind == 3) sum = b.node("Relu", {sum});
    outputs.push_back(
        b.node("QuantizeLinear", {sum, b.floats({}, {0.8}), one(b, ir::DType::kU8, kind == 3 ? 9 : 0)}));
    Graph graph = b.finish(outputs);
    const auto before = ops(graph);
    fuse_quantized(graph);
    EXPECT_EQ(ops(graph), before) << kind;
  }
}

}  // namespace
}  // namespace tensorsmith::graph::fuse_quantized_test
