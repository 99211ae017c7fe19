#include "base/id.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace tensorsmith {
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

}  // namespace
}  // namespace tensorsmith
