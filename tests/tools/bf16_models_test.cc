// Models with bf16 data, and f32 models with products in bf16: compiled, tuned and run, and
// compared with the reference evaluation of the imported graph.
#include <gtest/gtest.h>

#include <bit>
#include <fstream>

#include "../graph/onnx_model_builder.h"
#include "base/rng.h"
#include "cli_support.h"

namespace tensorsmith::tools::bf16_models_test {
namespace {

using graph::testing::ModelBuilder;
using testing::CliResult;
using testing::run_cli;

constexpr int kF32 = 1, kBF16 = 16;  // ONNX data types

class Models : public ::testing::Test {
 protected:
  void SetUp() override { options_.directory = directory_.path(); }

  std::vector<float> values(int64_t n, float scale) {
    std::vector<float> result;
    for (int64_t i = 0; i < n; ++i) result.push_back(scale * static_cast<float>(rng_.uniform() * 2 - 1));
    return result;
  }
  void constant(ModelBuilder& model, const std::string& name, const std::vector<int64_t>& shape, float scale,
                int data_type) {
    int64_t n = 1;
    for (const int64_t extent : shape) n *= extent;
    if (data_type == kF32) {
      model.initializer(name, shape, values(n, scale));
      return;
    }
    onnx::TensorProto& tensor = *model.proto().mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(data_type);
    for (const int64_t extent : shape) tensor.add_dims(extent);
    for (const float v : values(n, scale))
      tensor.add_int32_data(static_cast<int32_t>(std::bit_cast<uint32_t>(v) >> 16));
  }
  void check(const ModelBuilder& model) {
    const std::string path = directory_.file("model.onnx");
    std::ofstream(path, std::ios::binary) << model.bytes();
    for (const char* device : {"local:threads=1", "local:threads=2", "local:isa=avx2:threads=1"}) {
      const CliResult compile = run_cli(
          {"compile", path, "-o", std::string("out") + device, "--untuned", "--device", device}, options_);
      ASSERT_EQ(compile.exit_code, 0) << compile.err;
      const CliResult run = run_cli({"run", std::string("out") + device, "--reference", path}, options_);
      EXPECT_EQ(run.exit_code, 0) << device << "\n" << run.out << run.err;
    }
    const CliResult tune =
        run_cli({"tune", path, "-o", "tuned", "--trials", "8", "--quiet", "--seed", "1"}, options_);
    ASSERT_EQ(tune.exit_code, 0) << tune.err;
    const CliResult run = run_cli({"run", "tuned", "--reference", path}, options_);
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  }

  testing::TemporaryDirectory directory_;
  testing::CliOptions options_;
  Rng rng_{21};
};

TEST_F(Models, Convolutions) {
  ModelBuilder model;
  model.input("x", {1, 16, 14, 14}, kBF16).output("y");
  constant(model, "w1", {32, 16, 3, 3}, 0.15F, kBF16);
  constant(model, "b1", {32}, 0.5F, kBF16);
  constant(model, "w2", {24, 32, 1, 1}, 0.3F, kBF16);
  model.node("Conv", {"x", "w1", "b1"}, {"c1"}).ints("pads", {1, 1, 1, 1});
  model.node("Relu", {"c1"}, {"r1"}).node("MaxPool", {"r1"}, {"p1"}).ints("kernel_shape", {2, 2});
  model.ints("strides", {2, 2}).node("Conv", {"p1", "w2"}, {"y"});
  check(model);
}

TEST_F(Models, TransformerPart) {
  ModelBuilder model;
  model.input("x", {1, 24, 40}, kBF16).output("y");
  constant(model, "w", {40, 40}, 0.25F, kBF16);
  constant(model, "scale", {40}, 1.0F, kBF16);
  model.node("LayerNormalization", {"x", "scale"}, {"n"}).integer("axis", -1);
  model.node("MatMul", {"n", "w"}, {"q"}).node("Transpose", {"n"}, {"t"}).ints("perm", {0, 2, 1});
  model.node("MatMul", {"q", "t"}, {"s"}).node("Softmax", {"s"}, {"a"}).integer("axis", -1);
  model.node("MatMul", {"a", "n"}, {"m"}).node("Add", {"m", "x"}, {"y"});
  check(model);
}

// Like the output of converters: f32 weights and data, cast around the product.
TEST_F(Models, ProductsBetweenCasts) {
  ModelBuilder model;
  model.input("x", {30, 70}, kF32).output("y");
  constant(model, "w", {70, 50}, 0.2F, kF32);
  constant(model, "b", {50}, 0.5F, kF32);
  model.node("Cast", {"x"}, {"xb"}).integer("to", kBF16).node("Cast", {"w"}, {"wb"}).integer("to", kBF16);
  model.node("MatMul", {"xb", "wb"}, {"pb"}).node("Cast", {"pb"}, {"p"}).integer("to", kF32);
  model.node("Add", {"p", "b"}, {"s"}).node("Relu", {"s"}, {"y"});
  const std::string path = directory_.file("model.onnx");
  std::ofstream(path, std::ios::binary) << model.bytes();
  ASSERT_EQ(run_cli({"compile", path, "-o", "out", "--untuned"}, options_).exit_code, 0);
  // The product is rounded to bf16: a sum in another order may round to the neighbouring value.
  const CliResult run =
      run_cli({"run", "out", "--reference", path, "--rtol", "0.008", "--atol", "0.008"}, options_);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

}  // namespace
}  // namespace tensorsmith::tools::bf16_models_test
