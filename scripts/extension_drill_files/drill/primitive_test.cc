// The primitive toy_rotate: parsed, printed, applied, and refused where it is illegal.
#include "drill/doubled.h"

namespace tensorsmith::drill::primitive_test {
namespace {

TEST(Drill, Primitive) {
  const std::string text = "toy_rotate stage=1\n";
  const auto trace = sched::parse_trace(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  EXPECT_EQ(sched::print(*trace), text);
  const auto schedule = sched::replay(doubled(), *trace);
  ASSERT_TRUE(schedule.ok()) << schedule.error().message();
  const sched::Stage& y = schedule->stages.back();
  ASSERT_EQ(y.leaves.size(), 2u);
  EXPECT_EQ(y.iterators[y.leaves[0]].name, "j");
  EXPECT_EQ(y.iterators[y.leaves[1]].name, "i");
  expect_doubles(*schedule, text);
}

TEST(Drill, PrimitiveIsRefused) {
  sched::ScheduleBuilder builder(doubled());
  EXPECT_FALSE(builder.apply(sched::ToyRotate{0}).ok()) << "the input has no loops";
  EXPECT_FALSE(builder.apply(sched::ToyRotate{7}).ok()) << "there is no such stage";
  ASSERT_TRUE(builder.apply(sched::Annotate{1, 1, sched::Annotation::kVectorize}).ok());
  const auto before = builder.schedule().stages.back().leaves;
  const Status status = builder.apply(sched::ToyRotate{1});
  ASSERT_FALSE(status.ok()) << "a vectorized loop must be the innermost";
  EXPECT_EQ(status.error().place, "step 1 (toy_rotate) stage 'y'");
  EXPECT_TRUE(builder.schedule().stages.back().leaves == before);
}

}  // namespace
}  // namespace tensorsmith::drill::primitive_test
