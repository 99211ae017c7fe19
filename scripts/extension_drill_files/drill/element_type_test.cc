// The element type f8, which is the upper byte of an f16 (ONNX's FLOAT8E5M2): names, sizes, text,
// ONNX, and the same values from the interpreter, LLVM's code and C.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "base/dtype.h"
#include "codegen/runner.h"
#include "graph/evaluate.h"
#include "graph/onnx_model_builder.h"
#include "ir/text.h"
#include "lower/interpreter.h"
#include "support/naive_program.h"

namespace tensorsmith::drill::element_type_test {
namespace {

constexpr int kOnnxF8 = 27, kOnnxF32 = 1;

lower::Tensor all_values() {
  lower::Tensor tensor = lower::Tensor::zeros(DType::kF8, {256});
  for (size_t b = 0; b < tensor.data.size(); ++b) tensor.data[b] = static_cast<std::byte>(b);
  return tensor;
}

// Small values, so that sums of products stay finite.
lower::Tensor small_values(int64_t elements) {
  lower::Tensor tensor = lower::Tensor::zeros(DType::kF8, {elements});
  for (int64_t e = 0; e < elements; ++e) tensor.set(e, ir::scalar_float(DType::kF8, 0.37 * e - 9));
  return tensor;
}

// y = (x + x) / 3 rounded after each operation, z = f32(x) * 0.7.
ir::Workload arithmetic(int64_t elements) {
  const auto x = ir::placeholder("x", DType::kF8, {elements});
  const ir::Axis i{ir::Var("i"), elements}, j{ir::Var("j"), elements};
  const ir::Expr u = ir::load(x->output(), {i.var}), v = ir::load(x->output(), {j.var});
  const auto y = ir::compute("y", {i}, {}, ir::Combiner::kNone, {(u + u) / ir::float_imm(DType::kF8, 3)});
  const auto z = ir::compute("z", {j}, {}, ir::Combiner::kNone,
                             {ir::cast(DType::kF32, v) * ir::float_imm(DType::kF32, 0.7)});
  ir::Workload workload;
  workload.operations = {x, y, z};
  workload.outputs = {y->output(), z->output()};
  return workload;
}

TEST(Drill, ElementTypeHasNamesAndSizes) {
  EXPECT_EQ(parse_dtype("f8"), DType::kF8);
  EXPECT_EQ(to_string(DType::kF8), "f8");
  EXPECT_EQ(bytes_of(DType::kF8, 5), 5);
  EXPECT_TRUE(is_short_float(DType::kF8));
  const std::string text = ir::print(arithmetic(40));
  const auto parsed = ir::parse_workload(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(ir::print(*parsed), text);
  EXPECT_NE(text.find("f8"), std::string::npos);
}

TEST(Drill, ElementTypeHasValues) {
  EXPECT_EQ(ir::scalar_float(DType::kF8, 1.1).f, 1.0);
  EXPECT_EQ(ir::scalar_float(DType::kF8, 1.2).f, 1.25);
  EXPECT_EQ(ir::scalar_float(DType::kF8, 57344).f, 57344);  // the largest value
  EXPECT_TRUE(std::isinf(ir::scalar_float(DType::kF8, 1e6).f));
  const lower::Tensor all = all_values();
  lower::Tensor again = lower::Tensor::zeros(DType::kF8, {256});
  for (int64_t e = 0; e < 256; ++e) again.set(e, all.at(e));
  for (int64_t e = 0; e < 256; ++e) {
    if (std::isnan(all.at(e).f)) {
      EXPECT_TRUE(std::isnan(again.at(e).f)) << e;
    } else {
      EXPECT_EQ(again.data[e], all.data[e]) << e;
    }
  }
}

TEST(Drill, ElementTypeIsComputedAlikeEverywhere) {
  for (const lower::Tensor& x : {all_values(), small_values(77)}) {
    const ir::Workload workload = arithmetic(x.num_elements());
    const std::vector inputs = {x};
    const auto expected = lower::evaluate(workload, inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().message();
    const ir::Program program = test::naive_program(workload);
    const auto interpreted = lower::run(program, inputs);
    ASSERT_TRUE(interpreted.ok()) << interpreted.error().message();
    for (size_t o = 0; o < 2; ++o) EXPECT_EQ(test::compare((*interpreted)[o], (*expected)[o], 0, 0), "");
    const target::Device device = target::probe_local().value();
    for (const char* name : {"llvm", "c"}) {
      const codegen::Backend& backend = *codegen::find_backend(name).value();
      const auto kernel = backend.compile(program, device, {});
      ASSERT_TRUE(kernel.ok()) << kernel.error().message();
      const auto loaded = backend.load(kernel->object, kernel->symbol);
      ASSERT_TRUE(loaded.ok()) << loaded.error().message();
      const auto got = test::run_kernel((*loaded)->function(), *kernel, program, inputs, 1);
      for (size_t o = 0; o < 2; ++o) EXPECT_EQ(test::compare(got[o], (*expected)[o], 0, 0), "") << name;
    }
  }
}

TEST(Drill, ElementTypeIsReadFromOnnx) {
  std::string bytes;
  const lower::Tensor factor = small_values(48);
  for (const std::byte b : factor.data) bytes += static_cast<char>(b);
  graph::testing::ModelBuilder model(19);
  model.input("x", {48}, kOnnxF32).raw("factor", {48}, kOnnxF8, bytes);
  model.node("Cast", {"x"}, {"short"}).integer("to", kOnnxF8);
  model.node("Mul", {"short", "factor"}, {"y"}).output("y");
  const auto graph = model.import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  lower::Tensor x = lower::Tensor::zeros(DType::kF32, {48});
  for (int64_t e = 0; e < 48; ++e) x.set(e, ir::scalar_float(DType::kF32, 0.11 * e));
  const auto y = graph::evaluate(*graph, std::vector{x});
  ASSERT_TRUE(y.ok()) << y.error().message();
  ASSERT_EQ((*y)[0].dtype, DType::kF8);
  for (int64_t e = 0; e < 48; ++e) {
    const double rounded = ir::scalar_float(DType::kF8, x.at(e).f).f;
    EXPECT_EQ((*y)[0].at(e).f, ir::scalar_float(DType::kF8, rounded * factor.at(e).f).f) << e;
  }
  // The elements can also be in the field int32_data.
  onnx::TensorProto& listed = *model.proto().mutable_graph()->mutable_initializer(0);
  listed.clear_raw_data();
  for (const std::byte b : factor.data) listed.add_int32_data(std::to_integer<int>(b));
  const auto same = graph::evaluate(model.import().value(), std::vector{x});
  ASSERT_TRUE(same.ok()) << same.error().message();
  EXPECT_EQ((*same)[0].data, (*y)[0].data);
  std::ofstream("f8.onnx", std::ios::binary) << model.bytes();
}

}  // namespace
}  // namespace tensorsmith::drill::element_type_test
