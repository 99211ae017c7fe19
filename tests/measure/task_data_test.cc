#include "measure/task_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/expr.h"

namespace tensorsmith::measure::task_data_test {
namespace {

std::vector<float> floats(const lower::Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

ir::Workload gather() {
  const auto data = ir::placeholder("D", ir::DType::kF32, {10000});
  const auto places = ir::placeholder("P", ir::DType::kI32, {500});
  const ir::Axis i{ir::Var("i"), 500};
  const auto out = ir::compute("O", {i}, {}, ir::Combiner::kNone,
                               {ir::load(data->output(), {ir::load(places->output(), {i.var})})});
  return {{data, places, out}, {out->output()}};
}

TEST(RandomInputs, FloatsAreAsAsked) {
  const ir::Workload workload = gather();
  for (const InputValues values : {InputValues::kUniform, InputValues::kNormal}) {
    const bool normal = values == InputValues::kNormal;
    const auto inputs = random_inputs(workload, 7, values);
    double sum = 0, squares = 0, most = 0;
    const auto data = floats(inputs.at(0));
    for (const float v : data) {
      sum += v;
      squares += static_cast<double>(v) * v;
      most = std::max(most, std::abs(static_cast<double>(v)));
    }
    const auto n = static_cast<double>(data.size());
    // Five standard deviations of the mean; the variance of a uniform value in [-1, 1) is 1/3.
    EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n)) << "seed 7";
    EXPECT_NEAR(squares / n, normal ? 1 : 1.0 / 3, 0.1) << "seed 7";
    EXPECT_EQ(most > 2, normal);
    // Indices stay within the data.
    std::vector<int32_t> places(500);
    std::memcpy(places.data(), inputs.at(1).data.data(), inputs.at(1).data.size());
    for (const int32_t place : places) EXPECT_TRUE(place >= 0 && place < 10000) << place;
    EXPECT_EQ(random_inputs(workload, 7, values)[0].data, inputs[0].data);
    EXPECT_NE(random_inputs(workload, 8, values)[0].data, inputs[0].data);
  }
}

// Draws more values than one thread makes: all are drawn, no two blocks are alike, and the result
// is reproducible.
TEST(RandomInputs, ManyNormalValues) {
  constexpr int64_t kValues = (int64_t{3} << 18) + 5;
  const auto data = ir::placeholder("D", ir::DType::kF32, {kValues});
  const ir::Axis i{ir::Var("i"), kValues};
  const auto out = ir::compute("O", {i}, {}, ir::Combiner::kNone, {ir::load(data->output(), {i.var})});
  const ir::Workload workload = {{data, out}, {out->output()}};
  const auto inputs = random_inputs(workload, 5, InputValues::kNormal);
  const auto values = floats(inputs.at(0));
  double sum = 0, squares = 0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const auto n = static_cast<double>(kValues);
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n)) << "seed 5";
  EXPECT_NEAR(squares / n, 1, 0.01) << "seed 5";
  for (size_t v = static_cast<size_t>(kValues) - 5; v < values.size(); ++v) EXPECT_NE(values[v], 0);
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < a; ++b)
      EXPECT_NE(values[static_cast<size_t>(a) << 18], values[static_cast<size_t>(b) << 18]);
  EXPECT_EQ(random_inputs(workload, 5, InputValues::kNormal)[0].data, inputs[0].data);
}

}  // namespace
}  // namespace tensorsmith::measure::task_data_test
