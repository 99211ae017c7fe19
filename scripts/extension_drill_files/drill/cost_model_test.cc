// The cost model toy is made by its name. The drill trains, saves and evaluates one with the program.
#include <gtest/gtest.h>

#include "learn/latency/kinds.h"

namespace tensorsmith::drill::cost_model_test {
namespace {

TEST(Drill, CostModel) {
  const learn::CostModelKinds& kinds = learn::product_kinds();
  const auto made = kinds.make_untrained("toy", {});
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ((*made)->card().kind, "toy");
  const auto predictions = (*made)->predict(std::vector<learn::ProgramQuery>(3));
  ASSERT_TRUE(predictions.ok());
  ASSERT_EQ(predictions->size(), 3u);
  EXPECT_EQ(predictions->back().seconds, 1);
}

}  // namespace
}  // namespace tensorsmith::drill::cost_model_test
