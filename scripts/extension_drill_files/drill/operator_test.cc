// The operator ToyDouble: a model with it is imported and evaluated. The model stays in the current
// folder, where the drill compiles and runs it with the program.
#include <gtest/gtest.h>

#include <fstream>

#include "graph/evaluate.h"
#include "graph/onnx_model_builder.h"

namespace tensorsmith::drill::operator_test {
namespace {

TEST(Drill, Operator) {
  const std::vector<int64_t> shape = {64, 96};
  graph::testing::ModelBuilder model;
  model.input("x", shape).node("ToyDouble", {"x"}, {"y"}).output("y");
  const auto graph = model.import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  lower::Tensor x = lower::Tensor::zeros(ir::DType::kF32, shape);
  for (int64_t e = 0; e < x.num_elements(); ++e) x.set(e, ir::scalar_float(ir::DType::kF32, 0.25 * e - 100));
  const auto y = graph::evaluate(*graph, std::vector{x});
  ASSERT_TRUE(y.ok()) << y.error().message();
  for (int64_t e = 0; e < x.num_elements(); ++e) ASSERT_EQ((*y)[0].at(e).f, 2 * x.at(e).f);
  std::ofstream("double.onnx", std::ios::binary) << model.bytes();
}

}  // namespace
}  // namespace tensorsmith::drill::operator_test
