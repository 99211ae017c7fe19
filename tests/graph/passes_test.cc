// Each pass on its own: what it changes, what it must not change, and that results stay the same.
#include "graph/passes/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/ops/move.h"
#include "graph/ops/op_context.h"
#include "graph_builder.h"
#include "onnx_testdata.h"

namespace tensorsmith::graph::passes_test {
namespace {

using ::testing::ElementsAre;
using testing::GraphBuilder;
using testing::ops;

// Checks that the graph gives the same results before and after the pass, on random inputs.
void expect_same(const Graph& before, const Graph& after, uint64_t seed) {
  ASSERT_TRUE(verify_graph(after).ok()) << verify_graph(after).error().message();
  Rng rng(seed);
  std::vector<lower::Tensor> inputs;
  for (ValueId id : before.inputs) {
    const Value& value = before.values[id];
    inputs.push_back(lower::random_tensor(value.dtype, value.shape, rng));
  }
  const auto expected = evaluate(before, inputs);
  const auto got = evaluate(after, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message();
  ASSERT_TRUE(got.ok()) << got.error().message();
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ(testing::difference((*got)[i], (*expected)[i], 1e-4, 1e-5), "");
  }
}

ValueId random_constant(GraphBuilder& b, Shape shape, Rng& rng) {
  return b.constant(lower::random_tensor(ir::DType::kF32, std::move(shape), rng));
}

ValueId batch_norm(GraphBuilder& b, ValueId x, int64_t channels, Rng& rng) {
  const ValueId scale = random_constant(b, {channels}, rng);
  const ValueId bias = random_constant(b, {channels}, rng);
  const ValueId mean = random_constant(b, {channels}, rng);
  std::vector<double> variance;
  for (int64_t c = 0; c < channels; ++c) variance.push_back(0.5 + 0.25 * static_cast<double>(c));
  return b.node("BatchNormalization", {x, scale, bias, mean, b.floats({channels}, variance)},
                {{"epsilon", 1e-3}});
}

// Factors with 11 bits, accumulated in double.
TEST(RoundProducts, SumsAreThoseOfRoundedFactors) {
  Rng rng(21);
  GraphBuilder b;
  const ValueId x = b.input({3, 16});
  const ValueId w = random_constant(b, {16, 5}, rng);
  Graph graph = b.finish({b.node("MatMul", {x, w})});
  round_products(graph);
  const lower::Tensor input = lower::random_tensor(ir::DType::kF32, {3, 16}, rng);
  const auto got = evaluate(graph, std::span(&input, 1));
  ASSERT_TRUE(got.ok()) << got.error().message();
  const auto rounded = [](double v) {
    int exponent = 0;
    std::frexp(v, &exponent);
    return std::ldexp(std::round(std::ldexp(v, 11 - exponent)), exponent - 11);
  };
  const lower::Tensor& weights = *graph.values[w].constant;
  double apart = 0;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      double sum = 0, exact = 0, size = 0;
      for (int64_t k = 0; k < 16; ++k) {
        const double u = input.at(i * 16 + k).f, v = weights.at(k * 5 + j).f;
        sum += rounded(u) * rounded(v);
        exact += u * v;
        size += std::abs(u * v);
      }
      EXPECT_NEAR((*got)[0].at(i * 5 + j).f, sum, 1e-6 * size);
      apart = std::max(apart, std::abs(sum - exact) / size);
    }
  }
  EXPECT_GT(apart, 1e-5);
}

// Tensor cores process 8 elements of a sum at a time.
TEST(RoundProducts, OnlyWhatTensorCoresMultiply) {
  Rng rng(22);
  GraphBuilder b;
  const ValueId image = b.input({1, 16, 5, 5});
  const auto conv = [&](int64_t channels, int64_t groups) {
    return b.node("Conv", {image, random_constant(b, {16, channels, 1, 1}, rng)}, {{"group", groups}});
  };
  for (const int64_t groups : {1, 2, 16}) conv(16 / groups, groups);
  const ValueId matrix = b.input({12, 8});
  b.node("Gemm", {matrix, random_constant(b, {8, 4}, rng)});
  b.node("Gemm", {matrix, random_constant(b, {12, 4}, rng)}, {{"transA", int64_t{1}}});
  const ValueId half = b.input({8, 8}, ir::DType::kF16);
  b.node("MatMul", {half, half});
  b.node("Add", {matrix, matrix});
  Graph graph = b.graph();
  round_products(graph);
  std::vector<bool> rounds;
  for (const Node& node : graph.nodes) rounds.push_back(node.attributes.contains(kRoundFactors));
  EXPECT_THAT(rounds, ElementsAre(true, true, false, true, false, false, false));
}

TEST(FoldChannelScales, ConvBatchNorm) {
  for (const bool bias : {false, true}) {
    Rng rng(3);
    GraphBuilder b;
    std::vector<ValueId> inputs = {b.input({2, 4, 5, 5}), random_constant(b, {6, 2, 3, 3}, rng)};
    if (bias) inputs.push_back(random_constant(b, {6}, rng));
    const ValueId conv = b.node("Conv", inputs, {{"group", int64_t{2}}});
    const Graph before = b.finish({batch_norm(b, conv, 6, rng)});
    Graph after = before;
    fold_channel_scales(after);
    EXPECT_THAT(ops(after), ElementsAre("Conv"));
    expect_same(before, after, 1);
  }
}

TEST(FoldChannelScales, ConvTransposeWithGroups) {
  Rng rng(4);
  GraphBuilder b;
  const ValueId conv = b.node("ConvTranspose", {b.input({1, 4, 3, 3}), random_constant(b, {4, 3, 2, 2}, rng)},
                              {{"group", int64_t{2}}, {"strides", std::vector<int64_t>{2, 2}}});
  const Graph before = b.finish({batch_norm(b, conv, 6, rng)});
  Graph after = before;
  fold_channel_scales(after);
  EXPECT_THAT(ops(after), ElementsAre("ConvTranspose"));
  expect_same(before, after, 1);
}

TEST(FoldChannelScales, Gemm) {
  for (const int64_t transposed : {0, 1}) {
    Rng rng(5);
    GraphBuilder b;
    const ValueId w = random_constant(b, transposed != 0 ? Shape{6, 4} : Shape{4, 6}, rng);
    const ValueId gemm = b.node("Gemm", {b.input({3, 4}), w, random_constant(b, {6}, rng)},
                                {{"transB", transposed}, {"alpha", 0.5}, {"beta", 2.0}});
    const Graph before = b.finish({batch_norm(b, gemm, 6, rng)});
    Graph after = before;
    fold_channel_scales(after);
    EXPECT_THAT(ops(after), ElementsAre("Gemm"));
    expect_same(before, after, 1);
  }
}

// Exporters write batch normalization as separate operators.
TEST(FoldChannelScales, DecomposedArithmetic) {
  Rng rng(6);
  GraphBuilder b;
  ValueId x = b.node("Conv", {b.input({1, 2, 4, 4}), random_constant(b, {3, 2, 1, 1}, rng)});
  x = b.node("Sub", {x, random_constant(b, {1, 3, 1, 1}, rng)});
  x = b.node("Mul", {random_constant(b, {3, 1, 1}, rng), x});
  x = b.node("Div", {x, b.floats({}, {0.5})});
  x = b.node("Add", {x, random_constant(b, {3, 1, 1}, rng)});
  x = b.node("Sub", {b.floats({1}, {2.0}), x});
  const Graph before = b.finish({x});
  Graph after = before;
  fold_channel_scales(after);
  EXPECT_THAT(ops(after), ElementsAre("Conv"));
  expect_same(before, after, 1);
}

TEST(FoldChannelScales, AloneBecomesMulAdd) {
  Rng rng(7);
  GraphBuilder b;
  const ValueId relu = b.node("Relu", {b.input({2, 3, 4})});
  const Graph before = b.finish({batch_norm(b, relu, 3, rng)});
  Graph after = before;
  fold_channel_scales(after);
  EXPECT_THAT(ops(after), ElementsAre("Relu", "Mul", "Add"));
  expect_same(before, after, 1);
}

TEST(FoldChannelScales, LeavesWhatIsUsedTwiceOrNotPerChannel) {
  Rng rng(8);
  GraphBuilder b;
  const ValueId conv = b.node("Conv", {b.input({1, 2, 4, 4}), random_constant(b, {4, 2, 1, 1}, rng)});
  const ValueId scaled = b.node("Mul", {conv, random_constant(b, {4, 1, 1}, rng)});
  const Graph shared = b.finish({conv, scaled});
  Graph after = shared;
  fold_channel_scales(after);
  EXPECT_THAT(ops(after), ElementsAre("Conv", "Mul"));
  expect_same(shared, after, 1);

  // A vector of four along the columns and not the channels.
  GraphBuilder c;
  const ValueId other = c.node("Conv", {c.input({1, 2, 4, 4}), random_constant(c, {4, 2, 1, 1}, rng)});
  const Graph columns = c.finish({c.node("Mul", {other, random_constant(c, {4}, rng)})});
  after = columns;
  fold_channel_scales(after);
  EXPECT_THAT(ops(after), ElementsAre("Conv", "Mul"));
  expect_same(columns, after, 1);

  // The weights are known only at run time.
  GraphBuilder d;
  const ValueId dynamic = d.node("Conv", {d.input({1, 2, 4, 4}), d.input({4, 2, 1, 1})});
  const Graph runtime = d.finish({batch_norm(d, dynamic, 4, rng)});
  after = runtime;
  fold_channel_scales(after);
  EXPECT_THAT(ops(after), ElementsAre("Conv", "Mul", "Add"));
  expect_same(runtime, after, 1);
}

TEST(FoldPads, MovesZeroPadsIntoConv) {
  Rng rng(9);
  GraphBuilder b;
  const ValueId padded = b.node("Pad", {b.input({1, 2, 4, 4}), b.integers({0, 0, 1, 2, 0, 0, 0, 1})});
  const ValueId y = b.node("Conv", {padded, random_constant(b, {3, 2, 3, 3}, rng)},
                           {{"pads", std::vector<int64_t>{1, 0, 0, 1}}});
  const Graph before = b.finish({y});
  Graph after = before;
  fold_pads(after);
  eliminate_dead_nodes(after);
  EXPECT_THAT(ops(after), ElementsAre("Conv"));
  expect_same(before, after, 1);
}

TEST(FoldPads, AveragePoolCountsThem) {
  GraphBuilder b;
  const ValueId padded = b.node("Pad", {b.input({1, 2, 4, 4}), b.integers({0, 0, 1, 1, 0, 0, 1, 1})});
  const Graph before =
      b.finish({b.node("AveragePool", {padded}, {{"kernel_shape", std::vector<int64_t>{3, 3}}})});
  Graph after = before;
  fold_pads(after);
  eliminate_dead_nodes(after);
  EXPECT_THAT(ops(after), ElementsAre("AveragePool"));
  expect_same(before, after, 1);
}

TEST(FoldPads, LeavesOtherPads) {
  Rng rng(10);
  const auto after_fold = [&](const std::string& mode, double fill, std::vector<int64_t> pads) {
    GraphBuilder b;
    const ValueId padded =
        b.node("Pad", {b.input({1, 2, 4, 4}), b.integers(pads), b.floats({}, {fill})}, {{"mode", mode}});
    const int64_t channels = 2 + pads[1] + pads[5];
    const Graph before = b.finish({b.node("Conv", {padded, random_constant(b, {3, channels, 1, 1}, rng)})});
    Graph after = before;
    fold_pads(after);
    eliminate_dead_nodes(after);
    expect_same(before, after, 1);
    return ops(after);
  };
  EXPECT_THAT(after_fold("reflect", 0, {0, 0, 1, 1, 0, 0, 1, 1}), ElementsAre("Pad", "Conv"));
  EXPECT_THAT(after_fold("constant", 1, {0, 0, 1, 1, 0, 0, 1, 1}), ElementsAre("Pad", "Conv"));
  EXPECT_THAT(after_fold("constant", 0, {0, 1, 1, 1, 0, 0, 1, 1}), ElementsAre("Pad", "Conv"));
  EXPECT_THAT(after_fold("constant", 0, {0, 0, -1, 1, 0, 0, 1, 1}), ElementsAre("Pad", "Conv"));
  EXPECT_THAT(after_fold("constant", 0, {0, 0, 1, 1, 0, 0, 1, 1}), ElementsAre("Conv"));
}

TEST(EliminateIdentities, RemovesWhatReturnsItsInput) {
  GraphBuilder b;
  ValueId x = b.node("Relu", {b.input({2, 3})});
  x = b.node("Identity", {x});
  x = b.node("Dropout", {x});
  x = b.node("Cast", {x}, {{"to", int64_t{1}}});
  x = b.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 1}}});
  x = b.node("Reshape", {x, b.integers({2, 3})});
  x = b.node("Exp", {x});
  const Graph before = b.finish({x});
  Graph after = before;
  ASSERT_TRUE(eliminate_identities(after).ok());
  EXPECT_THAT(ops(after), ElementsAre("Relu", "Exp"));
  expect_same(before, after, 1);
}

TEST(EliminateIdentities, GraphOutputsKeepTheirNames) {
  GraphBuilder b;
  const ValueId relu = b.node("Relu", {b.input({2, 3})});
  const ValueId y = b.node("Identity", {relu});
  const Graph before = b.finish({y});
  Graph after = before;
  ASSERT_TRUE(eliminate_identities(after).ok());
  EXPECT_THAT(ops(after), ElementsAre("Relu"));
  EXPECT_EQ(after.values[after.outputs[0]].name, before.values[y].name);
  expect_same(before, after, 1);

  // An input, and a value that is an output itself, cannot be renamed.
  GraphBuilder c;
  const ValueId x = c.input({2});
  const ValueId e = c.node("Exp", {x});
  const Graph kept = c.finish({c.node("Identity", {x}), e, c.node("Identity", {e})});
  after = kept;
  ASSERT_TRUE(eliminate_identities(after).ok());
  EXPECT_THAT(ops(after), ElementsAre("Exp", "Identity", "Identity"));
  expect_same(kept, after, 1);
}

TEST(FoldConstants, WithinTheLimits) {
  Rng rng(11);
  GraphBuilder b;
  const ValueId sum = b.node("Add", {random_constant(b, {8, 8}, rng), random_constant(b, {8}, rng)});
  const ValueId turned = b.node("Transpose", {sum});
  const Graph before = b.finish({b.node("MatMul", {b.input({2, 8}), turned})});
  Graph after = before;
  ASSERT_TRUE(fold_constants(after, {}).ok());
  EXPECT_THAT(ops(after), ElementsAre("MatMul"));
  expect_same(before, after, 1);
  after = before;
  OptimizeOptions small;
  small.max_fold_cost = 10;
  ASSERT_TRUE(fold_constants(after, small).ok());
  EXPECT_THAT(ops(after), ElementsAre("Add", "Transpose", "MatMul"));
}

// ShuffleNet's channel shuffle.
TEST(MergeMoves, ChannelShuffle) {
  GraphBuilder b;
  ValueId x = b.node("Relu", {b.input({1, 12, 3, 5})});
  x = b.node("Reshape", {x, b.integers({1, 4, 3, 3, 5})});
  x = b.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3, 4}}});
  x = b.node("Reshape", {x, b.integers({1, 12, 3, 5})});
  const Graph before = b.finish({b.node("Exp", {x})});
  Graph after = before;
  merge_moves(after);
  eliminate_dead_nodes(after);
  EXPECT_THAT(ops(after), ElementsAre("Relu", "Move", "Exp"));
  expect_same(before, after, 1);
}

// Both halves of a shuffle are read from its source.
TEST(MergeMoves, ShuffleAndSplit) {
  GraphBuilder b;
  ValueId x = b.node("Relu", {b.input({1, 8, 4, 4})});
  x = b.node("Reshape", {x, b.integers({4, 2, 16})});
  x = b.node("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  x = b.node("Reshape", {x, b.integers({2, 1, 4, 4, 4})});
  std::vector<ValueId> outputs;
  for (int64_t half = 0; half < 2; ++half) {
    lower::Tensor index = lower::Tensor::zeros(ir::DType::kI64, {});
    index.set(0, ir::scalar_int(ir::DType::kI64, half));
    outputs.push_back(b.node("Gather", {x, b.constant(index)}));
  }
  const Graph before = b.finish(outputs);
  Graph after = before;
  merge_moves(after);
  eliminate_dead_nodes(after);
  EXPECT_THAT(ops(after), ElementsAre("Relu", "Move", "Move"));
  expect_same(before, after, 1);
}

TEST(MergeMoves, SlicesCompose) {
  GraphBuilder b;
  const ValueId x = b.input({10, 6});
  const ValueId first =
      b.node("Slice", {x, b.integers({9}), b.integers({0}), b.integers({0}), b.integers({-2})});
  const ValueId second = b.node("Slice", {first, b.integers({1}), b.integers({4}), b.integers({0})});
  const Graph before = b.finish({b.node("Transpose", {second})});
  Graph after = before;
  merge_moves(after);
  eliminate_dead_nodes(after);
  EXPECT_THAT(ops(after), ElementsAre("Move"));
  expect_same(before, after, 1);
}

// The rows of the result would be read through divisions, and a lone reshape is free already.
TEST(MergeMoves, LeavesFlattenedColumns) {
  GraphBuilder b;
  ValueId x = b.node("Transpose", {b.input({3, 4, 5})}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const Graph flattened = b.finish({b.node("Reshape", {x, b.integers({60})})});
  Graph after = flattened;
  merge_moves(after);
  EXPECT_THAT(ops(after), ElementsAre("Transpose", "Reshape"));
  GraphBuilder c;
  ValueId y = c.node("Reshape", {c.input({6, 4}), c.integers({2, 3, 4})});
  const Graph reshapes = c.finish({c.node("Reshape", {y, c.integers({24})})});
  after = reshapes;
  merge_moves(after);
  EXPECT_THAT(ops(after), ElementsAre("Reshape", "Reshape"));
}

TEST(MergeMoves, StepsRoundTrip) {
  const MoveStep step{{2, 5}, {{1, 2, 1}, {-1, 0, 3}, {0, -1, 1}}, false};
  const auto read = decode_step(encode_step(step), {10, 4, 2});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(encode_step(*read), encode_step(step));
  EXPECT_FALSE(decode_step(encode_step(step), {8, 4, 2}).has_value());
  EXPECT_FALSE(decode_step(std::vector<int64_t>{0, 9, 1}, {4}).has_value());
  EXPECT_FALSE(decode_step(std::vector<int64_t>{1, 1, 5}, {4}).has_value());
}

TEST(EliminateDeadNodes, DropsNodesAndValues) {
  Rng rng(12);
  GraphBuilder b;
  const ValueId x = b.input({2, 3});
  const ValueId unused = b.input({4});
  b.node("Exp", {unused});
  b.node("Add", {x, random_constant(b, {3}, rng)});
  const Graph before = b.finish({b.node("Relu", {x})});
  Graph after = before;
  eliminate_dead_nodes(after);
  EXPECT_THAT(ops(after), ElementsAre("Relu"));
  EXPECT_EQ(after.inputs.size(), 2u);
  EXPECT_EQ(after.values.size(), 3u);
  expect_same(before, after, 1);
}

TEST(VerifyGraph, FindsBrokenGraphs) {
  GraphBuilder b;
  const ValueId relu = b.node("Relu", {b.input({2})});
  const Graph good = b.finish({b.node("Exp", {relu})});
  ASSERT_TRUE(verify_graph(good).ok());
  Graph order = good;
  std::swap(order.nodes[NodeId(0)], order.nodes[NodeId(1)]);
  EXPECT_THAT(verify_graph(order).error().message(), ::testing::HasSubstr("before it is defined"));
  Graph twice = good;
  twice.nodes[NodeId(1)].outputs = twice.nodes[NodeId(0)].outputs;
  EXPECT_THAT(verify_graph(twice).error().message(), ::testing::HasSubstr("defines a value twice"));
  Graph range = good;
  range.outputs[0] = ValueId(99);
  EXPECT_THAT(verify_graph(range).error().message(), ::testing::HasSubstr("not defined"));
}

// Kernels smaller and larger than strides, uneven pads, cropped and extended outputs, groups, any rank.
TEST(SplitConvTranspose, AnyGeometry) {
  int split = 0, apart = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const auto draw = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low + 1)));
    };
    const auto rank = static_cast<size_t>(draw(1, 3));
    const int64_t groups = draw(1, 2), filters = draw(1, 3);
    Shape data = {draw(1, 2), groups * draw(1, 3)}, weights = {data[1], filters};
    Shape strides, dilations, extra, pads(2 * rank, 0);
    for (size_t d = 0; d < rank; ++d) {
      data.push_back(draw(1, 4));
      weights.push_back(draw(1, 5));
      strides.push_back(draw(1, 3));
      dilations.push_back(strides[d] == 1 ? draw(1, 2) : 1);
      extra.push_back(draw(0, strides[d] - 1));
      const int64_t full =
          (data[d + 2] - 1) * strides[d] + (weights[d + 2] - 1) * dilations[d] + 1 + extra[d];
      pads[d] = draw(0, std::min<int64_t>(full - 1, 4));
      pads[rank + d] = draw(0, std::min<int64_t>(full - 1 - pads[d], 4));
    }
    GraphBuilder b;
    std::vector<ValueId> inputs = {b.input(data), random_constant(b, weights, rng)};
    if (draw(0, 1) == 1) inputs.push_back(random_constant(b, {groups * filters}, rng));
    const ValueId y = b.node("ConvTranspose", inputs,
                             {{"group", groups},
                              {"strides", strides},
                              {"dilations", dilations},
                              {"output_padding", extra},
                              {"pads", pads}});
    const Graph before = b.finish({y});
    Graph after = before;
    split_conv_transpose(after);
    const bool phases = std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s > 1; });
    if (ops(after).front() == "ConvTranspose") continue;  // the filters would have too many zeros
    ++split;
    const std::vector<std::string> got = ops(after);
    if (got.size() > 2 && got[1] == "Conv") {
      ++apart;
      EXPECT_EQ(std::count(got.begin(), got.end(), "Conv"), std::ssize(got) - 2);
      EXPECT_EQ(got[got.size() - 2], "Concat");
      EXPECT_EQ(got.back(), "Move");
    } else {
      EXPECT_EQ(got, phases ? (std::vector<std::string>{"Conv", "Move"}) : std::vector<std::string>{"Conv"});
    }
    expect_same(before, after, seed);
  }
  EXPECT_GT(split, 130);
  EXPECT_GT(apart, 10);
}

// Dilations and pads of up to twice the image: windows for which no, some or all taps meet the
// image.
TEST(TrimConvolutions, AnyGeometry) {
  int trimmed = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const auto draw = [&](int64_t low, int64_t high) { return rng.uniform_int(low, high); };
    const auto rank = static_cast<size_t>(draw(1, 3));
    const int64_t groups = draw(1, 2);
    Shape data = {draw(1, 2), groups * draw(1, 3)}, weights = {groups * draw(1, 3), data[1] / groups};
    Shape strides, dilations, pads(2 * rank, 0);
    for (size_t d = 0; d < rank; ++d) {
      data.push_back(draw(1, 5));
      weights.push_back(draw(1, 4));
      strides.push_back(draw(1, 4));
      dilations.push_back(draw(1, 10));
      const int64_t reach = (weights[d + 2] - 1) * dilations[d] + 1;
      pads[d] = draw(0, 12);
      pads[rank + d] = std::max<int64_t>(draw(0, 12), reach - data[d + 2] - pads[d]);
    }
    GraphBuilder b;
    const ValueId w = random_constant(b, weights, rng);
    const ValueId y =
        b.node("Conv", {b.input(data), w},
               {{"group", groups}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}});
    const Graph before = b.finish({y});
    Graph after = before;
    trim_convolutions(after);
    trimmed += after.nodes[NodeId(0)].inputs[1] != w ? 1 : 0;
    expect_same(before, after, seed);
  }
  EXPECT_GT(trimmed, 100);
}

TEST(TrimConvolutions, LeavesInfiniteWeights) {
  GraphBuilder b;
  lower::Tensor w = lower::Tensor::zeros(ir::DType::kF32, {1, 1, 3, 3});
  w.set(0, ir::scalar_float(ir::DType::kF32, std::numeric_limits<double>::infinity()));
  const ValueId weights = b.constant(std::move(w));
  Graph graph = b.finish({b.node("Conv", {b.input({1, 1, 2, 2}), weights},
                                 {{"dilations", Shape{5, 5}}, {"pads", Shape{5, 5, 5, 5}}})});
  trim_convolutions(graph);
  EXPECT_EQ(graph.nodes[NodeId(0)].inputs[1], weights);
}

// The dilations of DeepLab's pyramid on an image of 20 x 20: with 24 only the middle tap remains,
// with 12 all nine.
TEST(TrimConvolutions, AtrousRatesBeyondTheImage) {
  Rng rng(3);
  for (const auto& [rate, left] : {std::pair{int64_t{24}, int64_t{1}}, std::pair{int64_t{12}, int64_t{3}}}) {
    GraphBuilder b;
    const ValueId y = b.node("Conv", {b.input({1, 2, 20, 20}), random_constant(b, {3, 2, 3, 3}, rng)},
                             {{"dilations", Shape{rate, rate}}, {"pads", Shape{rate, rate, rate, rate}}});
    Graph graph = b.finish({y});
    trim_convolutions(graph);
    EXPECT_EQ(graph.values[graph.nodes[NodeId(0)].inputs[1]].shape, (Shape{3, 2, left, left}));
  }
}

TEST(SplitConvTranspose, WhatItLeaves) {
  Rng rng(1);
  GraphBuilder b;
  const ValueId x = b.input({1, 2, 4, 4});
  const ValueId w = random_constant(b, {2, 3, 3, 3}, rng);
  const ValueId dilated =
      b.node("ConvTranspose", {x, w}, {{"strides", Shape{2, 1}}, {"dilations", Shape{2, 1}}});
  const ValueId computed = b.node("ConvTranspose", {x, b.input({2, 3, 3, 3})}, {{"strides", Shape{2, 2}}});
  const ValueId sparse =
      b.node("ConvTranspose", {x, random_constant(b, {2, 1, 1, 1}, rng)}, {{"strides", Shape{4, 4}}});
  Graph graph = b.finish({dilated, computed, sparse});
  split_conv_transpose(graph);
  EXPECT_THAT(ops(graph), ElementsAre("ConvTranspose", "ConvTranspose", "ConvTranspose"));
}

}  // namespace
}  // namespace tensorsmith::graph::passes_test
