#include "engine/model/reference_inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "../graph/onnx_model_builder.h"

namespace tensorsmith::engine::reference_inputs_test {
namespace {

using graph::testing::ModelBuilder;
constexpr int kBool = 9, kI8 = 3, kU8 = 2, kI32 = 6, kI64 = 7;

graph::Graph import(const ModelBuilder& builder) {
  return graph::import_onnx_bytes(builder.bytes(), {}, "test").value();
}

TEST(ReferenceInputs, IntegersUseTheirRange) {
  for (const int type : {kI8, kU8, kI32, kI64}) {
    ModelBuilder builder;
    builder.input("x", {2000}, type).output("y").node("Identity", {"x"}, {"y"});
    const auto x = reference_inputs(import(builder), 3).at(0);
    const int bits = 8 * ir::bytes_of(x.dtype);
    const bool has_sign = type != kU8;
    const int64_t low = has_sign ? (bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1))) : 0;
    const int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (has_sign ? bits - 1 : bits)) - 1;
    std::set<int64_t> seen;
    int64_t small = 0, negative = 0;
    for (int64_t i = 0; i < 2000; ++i) {
      const int64_t v = x.at(i).i;
      seen.insert(v);
      small += std::abs(static_cast<double>(v)) <= 8 ? 1 : 0;
      negative += v < 0 ? 1 : 0;
    }
    EXPECT_TRUE(seen.contains(low) && seen.contains(high)) << type;
    EXPECT_TRUE(seen.contains(0) && seen.contains(1)) << type;
    EXPECT_GT(small, 800) << type;
    EXPECT_LT(small, 1600) << type;
    EXPECT_EQ(negative > 500, has_sign) << type;
  }
}

TEST(ReferenceInputs, BooleansAreBothAndFloatsSpread) {
  ModelBuilder builder;
  builder.input("b", {200}, kBool).input("x", {2000}).output("y").node("Where", {"b2", "x", "x"}, {"y"});
  builder.proto().mutable_graph()->mutable_node()->Clear();
  builder.node("Identity", {"x"}, {"y"});
  const auto inputs = reference_inputs(import(builder), 3);
  int64_t ones = 0;
  for (int64_t i = 0; i < 200; ++i) ones += inputs[0].at(i).i;
  EXPECT_GT(ones, 50);
  EXPECT_LT(ones, 150);
  int64_t zero = 0, tiny = 0, large = 0, negative = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    const double v = inputs[1].at(i).f;
    zero += v == 0 ? 1 : 0;
    tiny += v != 0 && std::abs(v) < 0.1 ? 1 : 0;
    large += std::abs(v) > 2 ? 1 : 0;
    negative += v < 0 ? 1 : 0;
    EXPECT_LE(std::abs(v), 4);
  }
  for (const int64_t count : {zero, tiny, large, negative}) EXPECT_GT(count, 50);
  EXPECT_TRUE(mostly_finite(inputs));
  // The same seed gives the same inputs.
  EXPECT_EQ(reference_inputs(import(builder), 3)[1].data, inputs[1].data);
  EXPECT_NE(reference_inputs(import(builder), 4)[1].data, inputs[1].data);
}

TEST(ReferenceInputs, IndicesChooseSomething) {
  ModelBuilder builder;
  builder.initializer("table", {7, 2}, std::vector<float>(14, 1))
      .integers("depth", {5})
      .initializer("values", {2}, {0, 1})
      .input("data", {6, 4})
      .input("a", {3}, kI64)
      .input("b", {3}, kI32)
      .input("c", {3}, kI64)
      .input("d", {6, 4}, kI64)
      .input("free", {3}, kI64)
      .input("updates", {6, 4})
      .output("ya")
      .output("yc")
      .output("yd")
      .output("yf")
      .node("Add", {"a", "sum"}, {"unused"});
  builder.proto().mutable_graph()->mutable_node()->Clear();
  builder.node("Cast", {"b"}, {"b64"}).integer("to", kI64);
  builder.node("Add", {"a", "b64"}, {"at"}).node("Gather", {"table", "at"}, {"ya"}).integer("axis", 0);
  builder.node("OneHot", {"c", "depth", "values"}, {"yc"});
  builder.node("ScatterElements", {"data", "d", "updates"}, {"yd"}).integer("axis", 1);
  builder.node("Neg", {"free"}, {"yf"});
  const graph::Graph graph = import(builder);
  EXPECT_EQ(index_limits(graph), (std::vector<int64_t>{0, 7, 7, 5, 4, 0, 0}));
  const auto inputs = reference_inputs(graph, 9);
  for (const auto& [input, limit] : {std::pair{1, 7}, {2, 7}, {3, 5}, {4, 4}}) {
    const lower::Tensor& tensor = inputs[static_cast<size_t>(input)];
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      EXPECT_GE(tensor.at(i).i, 0);
      EXPECT_LT(tensor.at(i).i, limit);
    }
  }
}

}  // namespace
}  // namespace tensorsmith::engine::reference_inputs_test
