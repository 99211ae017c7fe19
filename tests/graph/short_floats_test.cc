// Operators on f16 and bf16 compute in f32 and round once: compared with sums and functions in
// double.
#include <gtest/gtest.h>

#include <cmath>

#include "graph_builder.h"
#include "ir/workload.h"

namespace tensorsmith::graph::short_floats_test {
namespace {

using ir::DType;
using lower::Tensor;
using testing::GraphBuilder;

Tensor filled(DType dtype, std::vector<int64_t> shape, double value) {
  Tensor t = Tensor::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < t.num_elements(); ++i) t.set(i, ir::scalar_float(dtype, value));
  return t;
}

std::vector<Tensor> run(GraphBuilder& b, std::vector<ValueId> outputs, const std::vector<Tensor>& inputs) {
  auto result = evaluate(b.finish(std::move(outputs)), inputs);
  TS_CHECK(result.ok(), result.ok() ? "" : result.error().message());
  return *std::move(result);
}

// Half a unit in the last place, relative to the value.
double half_unit(DType dtype) { return dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11; }

void expect_rounded(const Tensor& got, int64_t i, double exact) {
  // Error of f32 arithmetic in addition to that of one rounding.
  const double limit = std::abs(exact) * (half_unit(got.dtype) + 1e-5) + 1e-6;
  ASSERT_NEAR(got.at(i).f, exact, limit) << "element " << i;
}

class ShortFloats : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, ShortFloats, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const auto& test_case) { return std::string(ir::to_string(test_case.param)); });

// Sums of ones in bf16 would stop at 256, and in f16 at 2048.
TEST_P(ShortFloats, SumsDoNotStop) {
  const DType dtype = GetParam();
  for (const char* op : {"MatMul", "Gemm"}) {
    GraphBuilder b;
    const ValueId y = b.node(op, {b.input({1, 4096}, dtype), b.constant(filled(dtype, {4096, 1}, 1))});
    const auto outputs = run(b, {y}, {filled(dtype, {1, 4096}, 1)});
    EXPECT_EQ(outputs[0].dtype, dtype);
    EXPECT_EQ(outputs[0].at(0).f, 4096) << op;
  }
  GraphBuilder b;
  const ValueId y = b.node("ReduceSum", {b.input({4096}, dtype)}, {{"keepdims", int64_t{0}}});
  EXPECT_EQ(run(b, {y}, {filled(dtype, {4096}, 1)})[0].at(0).f, 4096);
  GraphBuilder c;
  const ValueId z = c.node("Conv",
                           {c.input({1, 512, 3, 3}, dtype), c.constant(filled(dtype, {2, 512, 3, 3}, 1)),
                            c.constant(filled(dtype, {2}, -512))},
                           {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  const Tensor conv = run(c, {z}, {filled(dtype, {1, 512, 3, 3}, 1)})[0];
  EXPECT_EQ(conv.at(4).f, 512 * 9 - 512);  // at the centre
  EXPECT_EQ(conv.at(0).f, 512 * 4 - 512);  // at a corner
}

TEST_P(ShortFloats, FunctionsAreRoundedOnce) {
  const DType dtype = GetParam();
  Rng rng(11);
  const Tensor x = lower::random_tensor(dtype, {4, 33}, rng);
  const std::pair<const char*, double (*)(double)> functions[] = {
      {"Gelu", [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); }},
      {"Sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }},
      {"Mish", [](double v) { return v * std::tanh(std::log1p(std::exp(v))); }},
      {"Softsign", [](double v) { return v / (1 + std::abs(v)); }}};
  for (const auto& [op, function] : functions) {
    SCOPED_TRACE(op);
    GraphBuilder b;
    const Tensor y = run(b, {b.node(op, {b.input(x.shape, dtype)})}, {x})[0];
    ASSERT_EQ(y.dtype, dtype);
    for (int64_t i = 0; i < y.num_elements(); ++i) expect_rounded(y, i, function(x.at(i).f));
  }
}

TEST_P(ShortFloats, NormalizationsAreRoundedOnce) {
  const DType dtype = GetParam();
  Rng rng(12);
  constexpr int64_t kRows = 5, kColumns = 300;
  const Tensor x = lower::random_tensor(dtype, {kRows, kColumns}, rng);
  GraphBuilder b;
  const ValueId in = b.input(x.shape, dtype);
  const ValueId softmax = b.node("Softmax", {in}, {{"axis", int64_t{-1}}});
  const ValueId scale = b.constant(filled(dtype, {kColumns}, 0.75));
  const ValueId norm = b.node("LayerNormalization", {in, scale}, {{"axis", int64_t{-1}}}, 3);
  const std::vector<ValueId> statistics = b.graph().nodes.back().outputs;
  const auto outputs = run(b, {softmax, norm, statistics[1], statistics[2]}, {x});
  EXPECT_EQ(outputs[0].dtype, dtype);
  EXPECT_EQ(outputs[1].dtype, dtype);
  EXPECT_EQ(outputs[2].dtype, DType::kF32);
  EXPECT_EQ(outputs[3].dtype, DType::kF32);
  for (int64_t r = 0; r < kRows; ++r) {
    double sum = 0, exponentials = 0, squares = 0;
    for (int64_t c = 0; c < kColumns; ++c) {
      sum += x.at(r * kColumns + c).f;
      exponentials += std::exp(x.at(r * kColumns + c).f);
    }
    const double mean = sum / kColumns;
    for (int64_t c = 0; c < kColumns; ++c) squares += std::pow(x.at(r * kColumns + c).f - mean, 2);
    const double deviation = std::sqrt(squares / kColumns + 1e-5);
    EXPECT_NEAR(outputs[2].at(r).f, mean, 1e-5);
    EXPECT_NEAR(outputs[3].at(r).f, 1 / deviation, 1e-4);
    for (int64_t c = 0; c < kColumns; ++c) {
      const int64_t i = r * kColumns + c;
      expect_rounded(outputs[0], i, std::exp(x.at(i).f) / exponentials);
      expect_rounded(outputs[1], i, (x.at(i).f - mean) / deviation * 0.75);
    }
  }
}

// Constants that become literals, results that are inputs, and stages that only move elements.
TEST_P(ShortFloats, DtypesStay) {
  const DType dtype = GetParam();
  Rng rng(13);
  const Tensor x = lower::random_tensor(dtype, {2, 6}, rng);
  GraphBuilder b;
  const ValueId in = b.input(x.shape, dtype);
  const ValueId low = b.constant(filled(dtype, {}, -0.25)), high = b.constant(filled(dtype, {}, 0.5));
  const ValueId clip = b.node("Clip", {in, low, high});
  const ValueId add = b.node("Add", {in, high});
  const ValueId same = b.node("ReduceSum", {in}, {{"noop_with_empty_axes", int64_t{1}}});
  const ValueId pad = b.node("Pad", {in, b.integers({0, 1, 0, 0}), high});
  const ValueId range = b.node("Range", {low, high, b.constant(filled(dtype, {}, 0.125))});
  const ValueId largest = b.node("ReduceMax", {in}, {{"axes", std::vector<int64_t>{1}}});
  const ValueId transposed = b.node("Transpose", {in});
  const ValueId greater = b.node("Greater", {in, high});
  const auto outputs = run(b, {clip, add, same, pad, range, largest, transposed, greater}, {x});
  for (size_t o = 0; o + 1 < outputs.size(); ++o) EXPECT_EQ(outputs[o].dtype, dtype) << o;
  EXPECT_EQ(outputs.back().dtype, DType::kBool);
  for (int64_t i = 0; i < 12; ++i) {
    const double v = x.at(i).f;
    EXPECT_EQ(outputs[0].at(i).f, std::min(std::max(v, -0.25), 0.5));
    EXPECT_EQ(outputs[1].at(i).f, ir::scalar_float(dtype, v + 0.5).f);
    EXPECT_EQ(outputs[2].at(i).f, v);
    EXPECT_EQ(outputs[3].at(i / 6 * 7 + 1 + i % 6).f, v);
    EXPECT_EQ(outputs[6].at(i % 6 * 2 + i / 6).f, v);
    EXPECT_EQ(outputs[7].at(i).i, v > 0.5 ? 1 : 0);
  }
  ASSERT_EQ(outputs[4].num_elements(), 6);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(outputs[4].at(i).f, -0.25 + 0.125 * static_cast<double>(i));
}

// The stages that the tuner schedules: the factors are read in place, and only the last stage
// rounds.
TEST(ShortFloats, Stages) {
  GraphBuilder b;
  const ValueId x = b.input({1, 8, 6, 6}, DType::kBF16), w = b.input({4, 8, 3, 3}, DType::kBF16);
  const ValueId bias = b.input({4}, DType::kBF16);
  b.node("Conv", {x, w, bias}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  const auto work = node_workload(b.graph(), b.graph().nodes.back());
  ASSERT_TRUE(work.ok());
  ASSERT_TRUE(ir::verify(work->workload).ok());
  std::vector<std::string> stages;
  for (const auto& op : work->workload.operations)
    if (!op->is_placeholder())
      stages.push_back(op->name + ": " + std::string(ir::to_string(op->output()->dtype)));
  EXPECT_EQ(stages, (std::vector<std::string>{"pad: bf16", "conv2d: f32", "bias_add: bf16"}));
}

}  // namespace
}  // namespace tensorsmith::graph::short_floats_test
