#include "base/id.h"

#include <gtest/gtest.h>

#include <ranges>
#include <string>
#include <type_traits>
#include <vector>

namespace tensorsmith::id_test {
namespace {

using StageId = Id<struct Stages>;
using LoopId = Id<struct Loops>;

static_assert(!std::is_convertible_v<StageId, LoopId> && !std::is_constructible_v<StageId, LoopId>);
static_assert(!std::is_convertible_v<size_t, StageId> && !std::is_convertible_v<StageId, size_t>);

TEST(Id, NamesAPlaceOrNothing) {
  EXPECT_FALSE(StageId().valid());
  EXPECT_TRUE(StageId(0).valid());
  EXPECT_EQ(StageId(7).place(), 7U);
  EXPECT_NE(StageId(0), StageId());
  EXPECT_LT(StageId(3), StageId(4));
}

TEST(IdVector, GivesTheIdOfWhatIsAppended) {
  IdVector<StageId, std::string> stages;
  const StageId next = stages.next();
  EXPECT_EQ(stages.push_back("a"), next);
  const StageId b = stages.push_back(std::string("b"));
  EXPECT_EQ(stages[next], "a");
  EXPECT_EQ(stages[b], "b");
  EXPECT_EQ(b, StageId(1));
  stages[b] += "c";
  EXPECT_EQ(stages.back(), "bc");
}

std::vector<uint32_t> places(IdRange<StageId> ids) {
  std::vector<uint32_t> result;
  for (const StageId id : ids) result.push_back(id.place());
  return result;
}

TEST(IdVector, GoesThroughItsIds) {
  const IdVector<StageId, int> stages(4, 7);
  EXPECT_EQ(stages[StageId(3)], 7);
  EXPECT_EQ(places(stages.ids()), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(places(stages.ids_before(StageId(2))), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(places(stages.ids_after(StageId(2))), std::vector<uint32_t>{3});
  EXPECT_TRUE(places(stages.ids_after(StageId(3))).empty());
  std::vector<uint32_t> backward;
  for (const StageId id : std::views::reverse(stages.ids())) backward.push_back(id.place());
  EXPECT_EQ(backward, (std::vector<uint32_t>{3, 2, 1, 0}));
}

TEST(IdVector, InsertsAndErasesAtIds) {
  IdVector<StageId, char> stages;
  for (const char name : {'a', 'c'}) stages.push_back(name);
  stages.insert(StageId(1), 'b');
  EXPECT_EQ(std::string(stages.begin(), stages.end()), "abc");
  EXPECT_TRUE(stages.has(StageId(2)));
  stages.erase(StageId(0));
  EXPECT_EQ(std::string(stages.begin(), stages.end()), "bc");
  EXPECT_FALSE(stages.has(StageId(2)));
  EXPECT_FALSE(stages.has(StageId()));
}

}  // namespace
}  // namespace tensorsmith::id_test
