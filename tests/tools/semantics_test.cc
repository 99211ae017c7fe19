// Results of compiled models for operators that are easily wrong: outputs that share memory, NaN,
// infinities, exact integers and quotients. Expected values are literals from the standard, not our
// interpreter's.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "../graph/onnx_model_builder.h"
#include "cli_support.h"
#include "graph/graph.h"

namespace tensorsmith::tools::semantics_test {
namespace {

using graph::testing::ModelBuilder;
using ir::DType;
using lower::Tensor;
using testing::CliResult;
using testing::run_cli;

constexpr int kF32 = 1, kI32 = 6, kI64 = 7, kBool = 9;  // ONNX data types
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Tensor floats(std::vector<int64_t> shape, const std::vector<double>& values) {
  Tensor tensor = Tensor::zeros(DType::kF32, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i)
    tensor.set(static_cast<int64_t>(i), ir::scalar_float(DType::kF32, values[i]));
  return tensor;
}

Tensor integers(DType dtype, std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i)
    tensor.set(static_cast<int64_t>(i), ir::scalar_int(dtype, values[i]));
  return tensor;
}

class Semantics : public ::testing::Test {
 protected:
  void SetUp() override { options_.directory = directory_.path(); }

  // Checks the model compiled without tuning for each instruction set, and tuned.
  void check(const ModelBuilder& model, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& outputs) {
    const std::string path = directory_.file("model.onnx");
    std::ofstream(path, std::ios::binary) << model.bytes();
    const std::filesystem::path data = directory_.path() / "test_data_set_0";
    std::filesystem::create_directories(data);
    const auto write = [&](const std::string& prefix, const std::vector<Tensor>& tensors) {
      for (size_t i = 0; i < tensors.size(); ++i) {
        const std::string file = (data / (prefix + std::to_string(i) + ".pb")).string();
        ASSERT_TRUE(graph::write_tensor_proto(file, prefix, tensors[i]).ok());
      }
    };
    write("input_", inputs);
    write("output_", outputs);
    for (const std::string device :
         {"local:threads=1", "local:threads=2", "local:isa=avx2", "local:isa=sse4.2"}) {
      const CliResult compile =
          run_cli({"compile", path, "-o", "out" + device, "--untuned", "--device", device}, options_);
      ASSERT_EQ(compile.exit_code, 0) << compile.err;
      const CliResult run = run_cli({"run", "out" + device, "--check", data.string()}, options_);
      EXPECT_EQ(run.exit_code, 0) << device << "\n" << run.out << run.err;
    }
    const CliResult tune =
        run_cli({"tune", path, "-o", "tuned", "--trials", "8", "--skip-end-to-end", "--quiet", "--seed", "1"},
                options_);
    ASSERT_EQ(tune.exit_code, 0) << tune.err;
    const CliResult run = run_cli({"run", "tuned", "--check", data.string()}, options_);
    EXPECT_EQ(run.exit_code, 0) << "tuned\n" << run.out << run.err;
  }

  testing::TemporaryDirectory directory_;
  testing::CliOptions options_;
};

TEST_F(Semantics, OutputListedBeforeTheValueItViews) {
  ModelBuilder model;
  model.input("x", {2, 3}).output("y").output("a");
  model.node("Relu", {"x"}, {"a"}).node("Flatten", {"a"}, {"y"});
  const Tensor a = floats({2, 3}, {0, 2, 0, 4, 0, 6});
  check(model, {floats({2, 3}, {-1, 2, -3, 4, -5, 6})}, {a, a});
}

TEST_F(Semantics, SeveralViewsOfOneValueAreOutputs) {
  ModelBuilder model;
  model.input("x", {2, 3}).output("y").output("z").output("s");
  model.integers("shape", {6}).integers("axes", {0});
  model.node("Relu", {"x"}, {"a"}).node("Reshape", {"a", "shape"}, {"y"});
  model.node("Unsqueeze", {"a", "axes"}, {"z"}).node("Neg", {"y"}, {"s"});
  const std::vector<double> a = {0, 2, 0, 4, 0, 6};
  check(model, {floats({2, 3}, {-1, 2, -3, 4, -5, 6})},
        {floats({6}, a), floats({1, 2, 3}, a), floats({6}, {0, -2, 0, -4, 0, -6})});
}

TEST_F(Semantics, InputIsAnOutput) {
  ModelBuilder model;
  model.input("x", {4}).output("r").output("x").output("v");
  model.integers("shape", {2, 2});
  model.node("Neg", {"x"}, {"r"}).node("Reshape", {"x", "shape"}, {"v"});
  const std::vector<double> x = {1, -2, 3, -4};
  check(model, {floats({4}, x)}, {floats({4}, {-1, 2, -3, 4}), floats({4}, x), floats({2, 2}, x)});
}

TEST_F(Semantics, ConstantsAreOutputs) {
  ModelBuilder model;
  model.input("x", {2}).output("c").output("v").output("y");
  model.initializer("c", {2}, {5, 7}).integers("shape", {2, 1});
  model.node("Reshape", {"c", "shape"}, {"v"}).node("Add", {"x", "c"}, {"y"});
  check(model, {floats({2}, {1, 2})}, {floats({2}, {5, 7}), floats({2, 1}, {5, 7}), floats({2}, {6, 9})});
}

TEST_F(Semantics, DropoutMaskIsComputed) {
  ModelBuilder model;
  model.input("x", {3}).output("y").output("mask").output("w").output("d");
  model.node("Neg", {"x"}, {"n"}).node("Dropout", {"n"}, {"d", "mask"});
  model.node("Where", {"mask", "d", "x"}, {"w"}).node("Relu", {"d"}, {"y"});
  const Tensor n = floats({3}, {-1, 2, -3});
  check(model, {floats({3}, {1, -2, 3})},
        {floats({3}, {0, 2, 0}), integers(DType::kBool, {3}, {1, 1, 1}), n, n});
}

TEST_F(Semantics, IntegerPowersAreExact) {
  ModelBuilder model;
  model.input("x", {6}, kI32)
      .input("e", {6}, kI32)
      .input("f", {6})
      .output("square")
      .output("power")
      .output("real");
  onnx::TensorProto& two = *model.proto().mutable_graph()->add_initializer();
  two.set_name("two");
  two.set_data_type(kI32);
  two.add_int32_data(2);
  model.node("Pow", {"x", "two"}, {"square"}).node("Pow", {"x", "e"}, {"power"});
  model.node("Pow", {"x", "f"}, {"real"});
  check(model,
        {integers(DType::kI32, {6}, {-2, 3, 40001, -7, 5, 4}), integers(DType::kI32, {6}, {3, 5, 2, 1, 0, 2}),
         floats({6}, {3, 2, 2, 3, 1.5, 0.5})},
        {integers(DType::kI32, {6}, {4, 9, 1600080001, 49, 25, 16}),
         integers(DType::kI32, {6}, {-8, 243, 1600080001, -7, 1, 16}),
         integers(DType::kI32, {6}, {-8, 9, 1600080001, -343, 11, 2})});
}

// Multiples of the divisor, and the numbers just below them.
TEST_F(Semantics, QuotientsOfConstantsAreExact) {
  std::vector<double> x;
  std::vector<double> quotients;
  std::vector<int64_t> whole;
  for (const int k : {1, 2, 3, 7, 25, 100}) {
    x.insert(x.end(), {41.0 * k, static_cast<double>(std::nextafter(41.0F * static_cast<float>(k), 0.0F))});
    quotients.insert(quotients.end(), {static_cast<double>(k), k - 1.0});
    whole.insert(whole.end(), {k, k - 1});
  }
  // The quotient of the number below 41 * k may round to k.
  for (size_t i = 1; i < x.size(); i += 2) {
    quotients[i] = std::floor(static_cast<float>(x[i]) / 41.0F);
    whole[i] = static_cast<int64_t>(quotients[i]);
  }
  const auto n = static_cast<int64_t>(x.size());
  ModelBuilder model;
  model.input("x", {n}).output("floor").output("cast");
  model.initializer("c", {}, {41});
  model.node("Div", {"x", "c"}, {"q"}).node("Floor", {"q"}, {"floor"});
  model.node("Cast", {"q"}, {"cast"}).integer("to", kI64);
  check(model, {floats({n}, x)}, {floats({n}, quotients), integers(DType::kI64, {n}, whole)});
}

// The difference of two equal products is 0: operators are not contracted.
TEST_F(Semantics, OperatorsRoundAsTheyDoAlone) {
  ModelBuilder model;
  model.input("x", {4}).input("y", {4}).output("sign");
  model.node("Mul", {"x", "y"}, {"a"}).node("Mul", {"y", "x"}, {"b"});
  model.node("Sub", {"a", "b"}, {"d"}).node("Sign", {"d"}, {"sign"});
  check(model, {floats({4}, {0.1, 1.1, 3.3, 1e-3}), floats({4}, {0.3, 0.7, 1.3, 7.7})},
        {floats({4}, {0, 0, 0, 0})});
}

TEST_F(Semantics, NanWinsInMaximaAndMinima) {
  ModelBuilder model;
  model.input("x", {1, 1, 4, 4});
  for (const char* name :
       {"max", "min", "pool", "relu_pool", "argmax", "argmin", "clip", "global", "top", "index"})
    model.output(name);
  model.integers("axes", {3}).integers("k", {2}).initializer("low", {}, {-1}).initializer("high", {}, {1});
  model.node("ReduceMax", {"x", "axes"}, {"max"}).integer("keepdims", 0);
  model.proto().mutable_opset_import(0)->set_version(18);
  model.node("ReduceMin", {"x", "axes"}, {"min"}).integer("keepdims", 0);
  model.node("MaxPool", {"x"}, {"pool"}).ints("kernel_shape", {2, 2}).ints("strides", {2, 2});
  model.node("Relu", {"x"}, {"r"}).node("MaxPool", {"r"}, {"relu_pool"}).ints("kernel_shape", {4, 4});
  model.node("ArgMax", {"x"}, {"argmax"}).integer("axis", 3).integer("keepdims", 0);
  model.node("ArgMin", {"x"}, {"argmin"}).integer("axis", 3).integer("keepdims", 0);
  model.node("Clip", {"x", "low", "high"}, {"clip"}).node("GlobalMaxPool", {"x"}, {"global"});
  model.node("TopK", {"x", "k"}, {"top", "index"}).integer("axis", 3);
  const std::vector<double> x = {1,    kNan, 3,     2,     //
                                 kNan, kNan, kNan,  kNan,  //
                                 -1,   5,    2,     kInf,  //
                                 4,    4,    -kInf, 0};
  check(model, {floats({1, 1, 4, 4}, x)},
        {floats({1, 1, 4}, {kNan, kNan, kInf, 4}), floats({1, 1, 4}, {kNan, kNan, -1, -kInf}),
         floats({1, 1, 2, 2}, {kNan, kNan, 5, kInf}), floats({1, 1, 1, 1}, {kNan}),
         integers(DType::kI64, {1, 1, 4}, {1, 0, 3, 0}), integers(DType::kI64, {1, 1, 4}, {1, 0, 0, 2}),
         floats({1, 1, 4, 4}, {1, kNan, 1, 1, kNan, kNan, kNan, kNan, -1, 1, 1, 1, 1, 1, -1, 0}),
         floats({1, 1, 1, 1}, {kNan}), floats({1, 1, 4, 2}, {kNan, 3, kNan, kNan, kInf, 5, 4, 4}),
         integers(DType::kI64, {1, 1, 4, 2}, {1, 2, 0, 1, 3, 1, 0, 1})});
}

TEST_F(Semantics, InfinitiesInReduceLogSumExp) {
  ModelBuilder model(18);
  model.input("x", {5, 2}).output("y");
  model.integers("axes", {1});
  model.node("ReduceLogSumExp", {"x", "axes"}, {"y"}).integer("keepdims", 0);
  check(model, {floats({5, 2}, {kInf, 1, -kInf, -kInf, -kInf, 2, 1000, 1000, kNan, 1})},
        {floats({5}, {kInf, -kInf, 2, 1000 + std::log(2.0), kNan})});
}

TEST_F(Semantics, AnglesOfAnySize) {
  ModelBuilder model;
  model.input("x", {6}).output("sin").output("cos").output("tan");
  model.node("Sin", {"x"}, {"sin"}).node("Cos", {"x"}, {"cos"}).node("Tan", {"x"}, {"tan"});
  const std::vector<double> x = {1e5, -1e10, 1e20, 3e38, -7e30, kInf};
  std::vector<double> sine, cosine, tangent;
  for (const double v : x) {
    const auto f = static_cast<double>(static_cast<float>(v));
    sine.push_back(std::sin(f));
    cosine.push_back(std::cos(f));
    tangent.push_back(std::tan(f));
  }
  check(model, {floats({6}, x)}, {floats({6}, sine), floats({6}, cosine), floats({6}, tangent)});
}

}  // namespace
}  // namespace tensorsmith::tools::semantics_test
