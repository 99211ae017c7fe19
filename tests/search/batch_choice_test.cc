// The choice of a batch by expected improvement.
#include "search/batch_choice.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/rng.h"

namespace tensorsmith::search::batch_choice_test {
namespace {

using ::testing::ElementsAre;

// Programs with one row, of which only the first two features differ.
struct Programs {
  std::vector<std::unique_ptr<ProgramInputs>> inputs;

  BelievedProgram make(float x, float y, double log_cost, double sigma = 0.3) {
    auto made = std::make_unique<ProgramInputs>();
    made->rows.rows = 1;
    made->rows.values.assign(feature::kPerStoreWidth, 0.0F);
    made->rows.values[0] = x;
    made->rows.values[1] = y;
    inputs.push_back(std::move(made));
    return {{log_cost, sigma}, inputs.back().get()};
  }
};

// The latest 128 programs and the fastest 64 of those before, as a full sort finds them.
TEST(BatchChoiceTest, TheFastestAndTheLatestProgramsAreInformative) {
  Rng rng(11);
  for (const size_t programs : {size_t{0}, size_t{100}, size_t{150}, size_t{300}}) {
    std::vector<double> log_costs;
    for (size_t i = 0; i < programs; ++i) log_costs.push_back(rng.uniform());
    std::vector<size_t> expected;
    const size_t old = programs - std::min<size_t>(programs, 128);
    std::vector<double> sorted(log_costs.begin(), log_costs.begin() + static_cast<std::ptrdiff_t>(old));
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < programs; ++i)
      if (i >= old || old <= 64 || log_costs[i] < sorted[64]) expected.push_back(i);
    EXPECT_EQ(informative(log_costs), expected) << programs;
  }
  // Failed programs are the slowest ones.
  std::vector<double> log_costs(200, std::numeric_limits<double>::infinity());
  log_costs[70] = 3;
  EXPECT_TRUE(std::ranges::count(informative(log_costs), size_t{70}));
}

TEST(BatchChoiceTest, WithoutFeaturesOrMeasurementsTheFirstOnesAreChosen) {
  Programs programs;
  const std::vector<BelievedProgram> bare{{{3, 0.3}, nullptr}, {{2, 0.3}, nullptr}, {{1, 0.3}, nullptr}};
  EXPECT_THAT(choose_batch(bare, {{programs.make(0, 0, 1), 1.0}}, 2), ElementsAre(0, 1));
  const std::vector<BelievedProgram> described{programs.make(0, 0, 2), programs.make(1, 0, 1)};
  EXPECT_THAT(choose_batch(described, {}, 5), ElementsAre(0, 1));
  EXPECT_THAT(choose_batch({}, {}, 5), ElementsAre());
}

TEST(BatchChoiceTest, EqualBeliefsAndFewMeasurementsLeaveTheOrder) {
  Programs programs;
  std::vector<BelievedProgram> pool;
  for (int i = 0; i < 10; ++i) pool.push_back(programs.make(static_cast<float>(i), 0, 1));
  EXPECT_THAT(choose_batch(pool, {{programs.make(4, 0, 1), 1.0}}, 3), ElementsAre(0, 1, 2));
}

// Three twins are believed to be the fastest, another program a little slower. After the first twin, the
// different program has more to win.
TEST(BatchChoiceTest, ABatchHasNoTwins) {
  Programs programs;
  const std::vector<BelievedProgram> pool{programs.make(0, 0, -1.0), programs.make(0, 0, -1.0),
                                          programs.make(0, 0, -1.0), programs.make(5, 5, -0.95)};
  const auto chosen = choose_batch(pool, {{programs.make(2, 9, 0), 0.0}}, 2);
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_LT(chosen[0], 3U);
  EXPECT_EQ(chosen[1], 3U);
}

// The believed fastest program is like two that took three times as long as believed, or failed.
TEST(BatchChoiceTest, MeasuredErrorsMoveTheChoice) {
  for (const double measured : {std::log(3.0) - 1, std::numeric_limits<double>::infinity()}) {
    Programs programs;
    const std::vector<BelievedProgram> pool{programs.make(0, 0, -1.1), programs.make(8, 8, -0.9)};
    const std::vector<MeasuredBelief> known{{programs.make(0.1F, 0, -1), measured},
                                            {programs.make(0, 0.1F, -1), measured},
                                            {programs.make(8, 7.9F, -0.5), -0.5},
                                            {programs.make(7.9F, 8, -0.6), -0.6}};
    EXPECT_THAT(choose_batch(pool, known, 1), ElementsAre(1)) << measured;
  }
}

}  // namespace
}  // namespace tensorsmith::search::batch_choice_test
