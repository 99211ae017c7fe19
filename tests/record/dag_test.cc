// Compute DAGs as TVM prints them.
#include "record/ansor/dag.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <tuple>

#include "ir/text.h"
#include "lower/interpreter.h"
#include "record/ansor/dag_syntax.h"

namespace tensorsmith::record::dag_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ir::Workload must_parse(const std::string& text, const std::string& key = "") {
  auto parsed = parse_dag(text, key);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message();
  if (!parsed.ok()) return {};
  EXPECT_TRUE(ir::verify(*parsed).ok());
  return std::move(*parsed);
}

std::vector<int64_t> extents(const ir::Operation& op) {
  std::vector<int64_t> out;
  for (const auto& axes : {op.spatial, op.reduce}) {
    for (const ir::Axis& axis : axes) out.push_back(axis.extent);
  }
  return out;
}

TEST(DagTest, PaddedConvolution) {
  const auto workload = must_parse(
      "input0 = PLACEHOLDER [2, 3, 9, 9]\n"
      "pad_temp(i0, i1, i2, i3) = tir.if_then_else(((((i2 >= 1) && (i2 < 10)) && (i3 >= 1)) && (i3 < 10)), "
      "input0[i0, i1, (i2 - 1), (i3 - 1)], 0f)\n"
      "input1 = PLACEHOLDER [4, 3, 3, 3]\n"
      "conv2d_nchw(nn, ff, yy, xx) += (pad_temp[nn, rc, ((yy*2) + ry), ((xx*2) + rx)]*input1[ff, rc, ry, "
      "rx])\n");
  ASSERT_EQ(workload.operations.size(), 4u);
  EXPECT_THAT(extents(*workload.operations[1]), ElementsAre(2, 3, 11, 11));
  EXPECT_THAT(extents(*workload.operations[3]), ElementsAre(2, 4, 5, 5, 3, 3, 3));
  EXPECT_EQ(workload.operations[3]->combiner, ir::Combiner::kSum);
  ASSERT_EQ(workload.outputs.size(), 1u);
  // One point computed by hand: the lower right corner sees two rows and two columns of the image.
  Rng rng(1);
  const std::vector<lower::Tensor> inputs = {lower::random_tensor(ir::DType::kF32, {2, 3, 9, 9}, rng),
                                             lower::random_tensor(ir::DType::kF32, {4, 3, 3, 3}, rng)};
  const auto outputs = lower::evaluate(workload, inputs);
  ASSERT_TRUE(outputs.ok());
  double expected = 0;
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 2; ++x)
        expected += inputs[0].at(((1 * 3 + c) * 9 + 7 + y) * 9 + 7 + x).f *
                    inputs[1].at(((2 * 3 + c) * 3 + y) * 3 + x).f;
    }
  }
  EXPECT_NEAR((*outputs)[0].at(((1 * 4 + 2) * 5 + 4) * 5 + 4).f, expected, 1e-5);
}

TEST(DagTest, SoftmaxAndMeanPooling) {
  const auto softmax = must_parse(
      "p0 = PLACEHOLDER [2, 5]\n"
      "T_softmax_maxelem(i0) max= p0[i0, k]\n"
      "T_softmax_exp(i0, i1) = tir.exp((p0[i0, i1] - T_softmax_maxelem[i0]))\n"
      "T_softmax_expsum(i0) += T_softmax_exp[i0, k]\n"
      "T_softmax_norm(i0, i1) = (T_softmax_exp[i0, i1]/T_softmax_expsum[i0])\n");
  EXPECT_THAT(extents(*softmax.operations[1]), ElementsAre(2, 5));
  EXPECT_EQ(softmax.operations[1]->combiner, ir::Combiner::kMax);
  Rng rng(1);
  const auto result =
      lower::evaluate(softmax, std::vector{lower::random_tensor(ir::DType::kF32, {2, 5}, rng)});
  ASSERT_TRUE(result.ok());
  double sum = 0;
  for (int i = 0; i < 5; ++i) sum += (*result)[0].at(5 + i).f;
  EXPECT_NEAR(sum, 1, 1e-6);

  // Only the key gives the window; the divisor counts the points inside.
  const std::string text =
      "data = PLACEHOLDER [1, 2, 8, 8]\n"
      "pad_temp(ax0, ax1, ax2, ax3) = tir.if_then_else(((((ax2 >= 1) && (ax2 < 9)) && (ax3 >= 1)) && (ax3 < "
      "9)), "
      "data[ax0, ax1, (ax2 - 1), (ax3 - 1)], 0f)\n"
      "pool_sum(ax0, ax1, ax2, ax3) += pad_temp[ax0, ax1, (ax2 + rv0), (ax3 + rv1)]\n"
      "pool_avg(ax0, ax1, ax2, ax3) = (pool_sum[ax0, ax1, ax2, ax3]/float32((((min(((ax2 - 1) + 2), 8) - "
      "(ax2 - 1)) "
      "+ 1)*((min(((ax3 - 1) + 2), 8) - (ax3 - 1)) + 1))))";
  const auto pool = must_parse(text, R"(["pool_layer", "avg", 1, 2, 8, 8, 3, 3, 1, "SAME"])");
  EXPECT_THAT(extents(*pool.operations[2]), ElementsAre(1, 2, 8, 8, 3, 3));
  EXPECT_THAT(extents(*pool.operations[3]), ElementsAre(1, 2, 8, 8));
  const auto open = parse_dag(text);
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(open.error().place, "3:1");
  EXPECT_THAT(open.error().reason, HasSubstr("'ax2'"));
}

TEST(DagTest, ShapesInTheKeyWin) {
  // There is padding only behind the data: no index tells how much.
  const std::string text =
      "p0 = PLACEHOLDER [1, 6]\n"
      "pad(i0, i1) = select((i1 < 6), p0[i0, i1], 0f)\n"
      "shift(i0, i1) = pad[i0, (i1 + 2)]\n";
  EXPECT_FALSE(parse_dag(text).ok());
  const auto known = must_parse(text, R"(["0123456789abcdef0123456789abcdef", [1, 6], [1, 6]])");
  EXPECT_THAT(extents(*known.operations[1]), ElementsAre(1, 8));
  const auto flat = must_parse(text, R"(["0123456789abcdef0123456789abcdef", 1, 6, 1, 7])");
  EXPECT_THAT(extents(*flat.operations[1]), ElementsAre(1, 9));
}

TEST(DagTest, EveryKindOfExpression) {
  const auto workload = must_parse(
      "a = PLACEHOLDER [4, 6]\n"
      "s = PLACEHOLDER []\n"
      "b(i, j) = (tir.sqrt(tir.fabs(a[i, j])) + (s[]*-1.5e-3f))\n"
      "c(i) min= select(((i == 0) || !(k != 3)), b[i, k], max(b[i, k], 2f))\n"
      "d(i, j) = a[floordiv(((i*3) + floormod(j, 3)), 3), j]\n"
      "e(i) = (tir.sigmoid(c[i]) - (float32(i) / 7f))\n"
      "f(i, j) *= b[i, k] + d[j, k] * float32((int64)2)\n",
      R"(["0123456789abcdef0123456789abcdef", [4, 6], [4, 4]])");
  EXPECT_EQ(workload.outputs.size(), 2u);  // e and f
  EXPECT_EQ(workload.operations.back()->combiner, ir::Combiner::kProd);
  EXPECT_TRUE(ir::parse_workload(ir::print(workload)).ok());
}

TEST(DagTest, ErrorsHaveAPlace) {
  const auto expect_error = [](const std::string& text, ErrorCode code, const std::string& place,
                               const std::string& reason) {
    const auto parsed = parse_dag(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, code) << text << parsed.error().message();
    EXPECT_EQ(parsed.error().place, place) << text << parsed.error().message();
    EXPECT_THAT(parsed.error().reason, HasSubstr(reason)) << text;
  };
  expect_error("", ErrorCode::kCorrupt, "1:1", "empty");
  expect_error("a = PLACEHOLDER [4]", ErrorCode::kCorrupt, "1:1", "computes nothing");
  expect_error("a = PLACEHOLDER [4, 0]", ErrorCode::kCorrupt, "1:21", "extent");
  expect_error("a = PLACEHOLDER [4]\nb(i) = a[i", ErrorCode::kCorrupt, "2:11", "']'");
  expect_error("a = PLACEHOLDER [4]\nb(i) = a[i, 0]", ErrorCode::kCorrupt, "2:8", "1 dimensions");
  expect_error("a = PLACEHOLDER [4]\nb(i) = c[i]", ErrorCode::kCorrupt, "2:8", "not defined");
  expect_error("a = PLACEHOLDER [4]\nb(i) = a[k]", ErrorCode::kCorrupt, "2:10", "neither an axis");
  expect_error("a = PLACEHOLDER [4]\nb(i) += a[i]", ErrorCode::kCorrupt, "2:6", "no reduce axis");
  expect_error("a = PLACEHOLDER [4]\na(i) = a[i]", ErrorCode::kCorrupt, "2:1", "twice");
  expect_error("a = PLACEHOLDER [4]\nb(i) = tir.bessel(a[i])", ErrorCode::kUnsupported, "2:8", "bessel");
  expect_error("a = PLACEHOLDER [4]\nb(i).v0 select(x)= a[i]", ErrorCode::kUnsupported, "2:5", "reduction");
  expect_error("a = PLACEHOLDER [4]\nb(i) = !a[i]", ErrorCode::kCorrupt, "2:8", "a condition");
  expect_error("a = PLACEHOLDER [4]\nb(i) = tir.exp(a[i], 1)", ErrorCode::kCorrupt, "2:8", "takes 1");
  expect_error("a = PLACEHOLDER [4]\nb(i) = (a[i] && (i < 2))", ErrorCode::kCorrupt, "2:14", "condition");
  expect_error("a = PLACEHOLDER [4]\nb(i) = floordiv(a[i], 2)", ErrorCode::kCorrupt, "2:8", "integers");
  expect_error("a = PLACEHOLDER [4]\nb(i) = a[a[i]]", ErrorCode::kCorrupt, "2:10", "integer");
  expect_error("a = PLACEHOLDER [4]\nb(i) = a[i] + 9223372036854775808", ErrorCode::kCorrupt, "2:15",
               "'9223372036854775808' is out of range");
  expect_error("a = PLACEHOLDER [4]\nb(i) = a[i] - -9223372036854775809", ErrorCode::kCorrupt, "2:16",
               "is out of range");
  expect_error("a = PLACEHOLDER [4]\nb(i) = a[i] + 0x1", ErrorCode::kCorrupt, "2:15", "cannot read");
}

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

// Neither nesting nor long chains make an expression so deep that a function that walks through it
// overflows the stack.
TEST(DagTest, DepthIsLimited) {
  const auto parse = [](const std::string& body) {
    return parse_dag_syntax("a = PLACEHOLDER [4]\nb(i) = " + body);
  };
  const std::string chain = repeated(" + a[i]", 450);
  for (const std::string& body :
       {repeated("(", 100000) + "a[i]", repeated("(int64)", 30000) + "1", repeated("-", 30000) + "a[i]",
        repeated("exp(", 30000) + "a[i]", "a[i]" + repeated(" + a[i]", 600),
        repeated("(", 100) + "a[i]" + repeated(chain + ")", 100)}) {
    const auto parsed = parse(body);
    ASSERT_FALSE(parsed.ok()) << body.substr(0, 20);
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(parsed.error().reason, HasSubstr("nests too deeply"));
  }
  const auto accepted = parse("a[i]" + chain);
  ASSERT_TRUE(accepted.ok()) << accepted.error().message();
  const DagOperation& sum = accepted->back();
  EXPECT_EQ(sum.nodes[sum.body].depth, 452);  // 450 sums, a read and its index
  EXPECT_TRUE(parse(repeated("(", 150) + "a[i]" + repeated(")", 150)).ok());
  EXPECT_TRUE(parse(repeated("(int64)", 150) + "1").ok());
}

TEST(DagTest, NumbersKeepTheirKind) {
  const auto literal = [](const std::string& text) {
    const auto parsed = parse_dag_syntax("b(i) = " + text);
    EXPECT_TRUE(parsed.ok()) << text;
    if (!parsed.ok()) return DagNode();
    const DagOperation& op = parsed->back();
    return op.nodes[op.body];
  };
  EXPECT_EQ(literal("9223372036854775807").integer, INT64_MAX);
  const DagNode least = literal("-9223372036854775808");
  EXPECT_EQ(least.kind, DagNode::Kind::kInt);
  EXPECT_EQ(least.integer, INT64_MIN);
  EXPECT_EQ(literal("- 3").integer, -3);
  must_parse(
      "a = PLACEHOLDER [4]\n"
      "b(i) = (a[i] + float32((i*-9223372036854775808)))\n"
      "c(i) = (select((i >= -9223372036854775808), a[i], 0f) + b[i])\n");
  for (const auto& [text, value, dtype] :
       {std::tuple("0f", 0.0, ir::DType::kF32), std::tuple("1h", 1.0, ir::DType::kF16),
        std::tuple("-3f64", -3.0, ir::DType::kF64), std::tuple("-1.5e-3f", -1.5e-3, ir::DType::kF32),
        std::tuple("99999999999999999999f", 1e20, ir::DType::kF32)}) {
    const DagNode node = literal(text);
    EXPECT_EQ(node.kind, DagNode::Kind::kFloat) << text;
    EXPECT_EQ(node.number, value) << text;
    EXPECT_EQ(node.dtype, dtype) << text;
  }
}

}  // namespace
}  // namespace tensorsmith::record::dag_test
