// The plan toy: the table has it, and every program that it schedules computes the right values.
#include <algorithm>

#include "drill/doubled.h"
#include "space/design_space.h"
#include "space/plan_kind.h"
#include "target/target.h"

namespace tensorsmith::drill::plan_test {
namespace {

TEST(Drill, Plan) {
  const auto kinds = space::plan_kinds();
  EXPECT_TRUE(std::any_of(kinds.begin(), kinds.end(), [](const auto* kind) { return kind->name == "toy"; }));
  EXPECT_EQ(space::fallback_kind(target::DeviceKind::kCpu).name, "plain");

  const ir::Workload workload = doubled();
  const auto space = space::DesignSpace::build(workload, target::find_device("epyc-7763").value(), {});
  ASSERT_TRUE(space.ok()) << space.error().message();
  size_t programs = 0, unrolled = 0;
  for (int sketch = 0; sketch < static_cast<int>(space->num_sketches()); ++sketch) {
    if (space->describe(sketch) != "toy y") continue;
    for (const space::Candidate& candidate : space->enumerate(sketch, 16)) {
      EXPECT_TRUE(space->check(candidate).ok());
      EXPECT_GT(space->estimate(candidate), 0);
      const auto trace = space->to_trace(candidate);
      ASSERT_TRUE(trace.ok()) << trace.error().message();
      const std::string what = sched::print(*trace);
      EXPECT_NE(what.find("as=parallel"), std::string::npos) << what;
      unrolled += what.find("as=unroll") == std::string::npos ? 0 : 1;
      const auto schedule = sched::replay(workload, *trace);
      ASSERT_TRUE(schedule.ok()) << what << schedule.error().message();
      expect_doubles(*schedule, what);
      ++programs;
    }
  }
  EXPECT_EQ(programs, 2u);
  EXPECT_EQ(unrolled, 1u);
}

}  // namespace
}  // namespace tensorsmith::drill::plan_test
