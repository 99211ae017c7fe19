#include <gtest/gtest.h>

#include <cstring>

#include "base/rng.h"
#include "lower/lower.h"
#include "sched/step.h"
#include "support/small_workloads.h"

namespace tensorsmith::lower::pack_test {
namespace {

using sched::Layout;

// Directly from the definition of a layout: storage dimension d holds (index[dim] / divisor) %
// extent.
std::vector<int32_t> pack_by_definition(const Layout& layout, const std::vector<int64_t>& shape,
                                        const std::vector<int32_t>& source) {
  int64_t size = 1;
  for (const auto& d : layout) size *= d.extent;
  std::vector<int32_t> out(static_cast<size_t>(size), 0);
  std::vector<int64_t> index(shape.size());
  for (size_t flat = 0; flat < source.size(); ++flat) {
    auto rest = static_cast<int64_t>(flat);
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    int64_t at = 0;
    for (const auto& d : layout)
      at = at * d.extent + index[static_cast<size_t>(d.dim)] / d.divisor % d.extent;
    out[static_cast<size_t>(at)] = source[flat];
  }
  return out;
}

TEST(Pack, AsTheLayoutSays) {
  const std::vector<int64_t> shape = {3, 40, 2, 5};
  std::vector<int32_t> source(3 * 40 * 2 * 5);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<int32_t>(i) + 1;
  const std::vector<Layout> layouts = {
      {{0, 1, 3}, {1, 1, 40}, {2, 1, 2}, {3, 1, 5}},
      {{3, 1, 5}, {2, 1, 2}, {1, 1, 40}, {0, 1, 3}},
      {{0, 1, 3}, {1, 16, 3}, {2, 1, 2}, {3, 1, 5}, {1, 1, 16}},
      {{1, 12, 4}, {0, 2, 2}, {3, 3, 2}, {2, 1, 2}, {1, 4, 3}, {0, 1, 2}, {3, 1, 3}, {1, 1, 4}},
  };
  for (const Layout& layout : layouts) {
    const std::vector<int32_t> expected = pack_by_definition(layout, shape, source);
    std::vector<int32_t> got(expected.size(), -1);
    pack(layout, shape, 4, source.data(), got.data());
    EXPECT_EQ(got, expected);
  }
}

TEST(Pack, ElementsOfAnySizeAndScalars) {
  for (const int bytes : {1, 2, 4, 8}) {
    std::vector<unsigned char> source(static_cast<size_t>(6 * bytes));
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i + 1);
    std::vector<unsigned char> got(static_cast<size_t>(8 * bytes), 0xff);
    pack({{0, 4, 2}, {0, 1, 4}}, {6}, bytes, source.data(), got.data());
    EXPECT_EQ(std::memcmp(got.data(), source.data(), source.size()), 0);
    for (size_t i = source.size(); i < got.size(); ++i) EXPECT_EQ(got[i], 0);
  }
  const int32_t scalar = 7;
  int32_t packed = 0;
  pack({}, {}, 4, &scalar, &packed);
  EXPECT_EQ(packed, 7);
}

TEST(Pack, LoweringNamesThePreparedInputs) {
  sched::ScheduleBuilder builder(test::small::conv2d(3, 6, 20, 3, 1, 1));
  const Layout layout = {{0, 16, 2}, {1, 1, 3}, {2, 1, 3}, {3, 1, 3}, {0, 1, 16}};
  ASSERT_TRUE(builder.apply(sched::PackLayout{1, layout}).ok());
  const auto lowered = lower(builder.schedule(), "packed");
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->program.name, "packed");
  ASSERT_EQ(lowered->prepared.size(), 1U);
  EXPECT_EQ(lowered->prepared[0].input, 1U);
  EXPECT_EQ(lowered->prepared[0].transform, nullptr);
  EXPECT_EQ(lowered->prepared[0].layout, layout);
  EXPECT_EQ(lowered->program.inputs[1]->shape, (std::vector<int64_t>{2, 3, 3, 3, 16}));
  EXPECT_EQ(lowered->program.inputs[1]->name, "W");
}

// A schedule that no step makes: lowering reports the error with the stage.
TEST(Lower, AStageThatIsReadOutsideItsLoopIsAnError) {
  sched::Schedule schedule = sched::Schedule::create(test::small::matmul(4, 4, 4, true));
  const sched::StageId c = *schedule.stage_named("C");
  schedule.stages[c].attach = sched::AttachKind::kAt;
  schedule.stages[c].attach_stage = *schedule.stage_named("R");
  schedule.stages[c].attach_iterator = sched::IteratorId(0);
  const auto lowered = lower(schedule);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().code, ErrorCode::kIllegal);
  EXPECT_EQ(lowered.error().place, "stage 'C'");
}

}  // namespace
}  // namespace tensorsmith::lower::pack_test
