#include "space/tile_lengths.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace tensorsmith::space::tile_lengths_test {
namespace {

// Returns all tuples by brute force.
std::set<std::vector<int64_t>> all_tuples(int64_t extent, int parts, int64_t cap) {
  std::set<std::vector<int64_t>> result;
  std::vector<int64_t> l(static_cast<size_t>(parts), 1);
  while (true) {
    int64_t product = 1;
    for (int64_t x : l) product *= x;
    if (product <= extent && (cap == 0 || l.back() <= cap)) result.insert(l);
    size_t p = l.size();
    while (p > 0 && ++l[p - 1] > extent) l[--p] = 1;
    if (p == 0) return result;
  }
}

TEST(TileLengths, CountsAndEnumeratesAllTuples) {
  for (int64_t extent : {1, 2, 3, 7, 12, 16, 25}) {
    for (int parts : {1, 2, 3}) {
      for (int64_t cap : {0, 1, 4, 64}) {
        const TileLengths tiles(extent, parts, cap);
        const auto expected = all_tuples(extent, parts, cap);
        EXPECT_EQ(tiles.count(), static_cast<double>(expected.size()))
            << extent << " " << parts << " " << cap;
        std::set<std::vector<int64_t>> found;
        std::vector<int64_t> l(static_cast<size_t>(parts), 1);
        do {
          EXPECT_TRUE(tiles.contains(l));
          EXPECT_TRUE(found.insert(l).second);
        } while (tiles.advance(l));
        EXPECT_EQ(found, expected);
        EXPECT_EQ(l, std::vector<int64_t>(static_cast<size_t>(parts), 1)) << "wraps to the first tuple";
      }
    }
  }
}

// For tiles inside a block, the products of the inner lengths divide the extent.
TEST(TileLengths, DividesWhereAsked) {
  const uint64_t seed = 23;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  for (int64_t extent : {1, 7, 12, 36}) {
    for (int parts : {1, 2, 3}) {
      for (int64_t cap : {0, 4}) {
        const TileLengths tiles(extent, parts, cap, true);
        std::set<std::vector<int64_t>> expected;
        for (const auto& l : all_tuples(extent, parts, cap)) {
          int64_t product = 1;
          bool divides = true;
          for (size_t p = l.size(); p-- > 0;) divides = divides && extent % (product *= l[p]) == 0;
          if (divides) expected.insert(l);
        }
        EXPECT_EQ(tiles.count(), static_cast<double>(expected.size()));
        std::set<std::vector<int64_t>> found, sampled, mutated;
        std::vector<int64_t> l(static_cast<size_t>(parts), 1), m = l;
        do {
          EXPECT_TRUE(found.insert(l).second);
        } while (tiles.advance(l));
        EXPECT_EQ(found, expected);
        for (int i = 0; i < 5000; ++i) {
          tiles.sample(rng, 4, l);
          sampled.insert(l);
          tiles.mutate(rng, 4, m);
          mutated.insert(m);
        }
        EXPECT_EQ(sampled, expected);
        EXPECT_EQ(mutated, expected);
        for (auto& x : l) x = 5;
        tiles.fit(l, l);
        EXPECT_TRUE(tiles.contains(l));
      }
    }
  }
}

TEST(TileLengths, CountsLargeAxesWithoutEnumeration) {
  // Sum over l of floor(n / l), the number of pairs: known values of the divisor summatory function
  // (OEIS A006218).
  EXPECT_EQ(TileLengths(100, 2, 0).count(), 482);
  EXPECT_EQ(TileLengths(1000000, 2, 0).count(), 13970034);
}

TEST(TileLengths, SamplesAndMutationsStayInsideAndReachEverything) {
  const uint64_t seed = 17;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  for (int64_t extent : {1, 6, 14}) {
    for (int64_t cap : {0, 5}) {
      const TileLengths tiles(extent, 2, cap);
      const auto expected = all_tuples(extent, 2, cap);
      std::set<std::vector<int64_t>> sampled, mutated;
      std::vector<int64_t> l(2, 1), m(2, 1);
      for (int i = 0; i < 20000; ++i) {
        tiles.sample(rng, 4, l);
        ASSERT_TRUE(tiles.contains(l));
        sampled.insert(l);
        tiles.mutate(rng, 4, m);
        ASSERT_TRUE(tiles.contains(m));
        mutated.insert(m);
      }
      EXPECT_EQ(sampled, expected);
      EXPECT_EQ(mutated, expected);
    }
  }
}

TEST(TileLengths, NeighboursAreOneStepAwayAndReachEverything) {
  for (const int64_t extent : {1, 6, 14, 36}) {
    for (const int64_t cap : {0, 5}) {
      for (const bool divide : {false, true}) {
        const TileLengths tiles(extent, 2, cap, divide);
        std::vector<std::vector<int64_t>> open{{1, 1}};
        std::set<std::vector<int64_t>> reached(open.begin(), open.end());
        while (!open.empty()) {
          const auto from = open.back();
          open.pop_back();
          std::set<std::vector<int64_t>> once;
          for (const auto& to : tiles.neighbours(4, from)) {
            EXPECT_TRUE(tiles.contains(to));
            EXPECT_NE(to, from);
            EXPECT_TRUE(once.insert(to).second) << "twice";
            if (reached.insert(to).second) open.push_back(to);
          }
        }
        EXPECT_EQ(static_cast<double>(reached.size()), tiles.count())
            << extent << " " << cap << " " << divide;
      }
    }
  }
}

TEST(TileLengths, PrefersVectorMultiplesAndDivisors) {
  Rng rng(3);
  const TileLengths tiles(56, 1, 0);
  std::map<int64_t, int> count;
  std::vector<int64_t> l(1);
  for (int i = 0; i < 10000; ++i) {
    tiles.sample(rng, 16, l);
    ++count[l[0]];
  }
  int good = 0;
  for (const auto& [length, n] : count)
    if (56 % length == 0 || length % 16 == 0) good += n;
  EXPECT_GT(good, 7000);
}

TEST(TileLengths, FitsLengthsOfAnotherExtent) {
  std::vector<int64_t> l(2);
  TileLengths(14, 2, 0).fit(std::vector<int64_t>{4, 16}, l);
  EXPECT_EQ(l, (std::vector<int64_t>{1, 14}));
  TileLengths(200, 2, 0).fit(std::vector<int64_t>{4, 16}, l);
  EXPECT_EQ(l, (std::vector<int64_t>{4, 16}));
  TileLengths(40, 2, 0).fit(std::vector<int64_t>{4, 16}, l);
  EXPECT_EQ(l, (std::vector<int64_t>{2, 16}));
}

TEST(TileLengths, RefusesForeignTuples) {
  const TileLengths tiles(10, 2, 4);
  EXPECT_FALSE(tiles.contains(std::vector<int64_t>{1}));
  EXPECT_FALSE(tiles.contains(std::vector<int64_t>{0, 1}));
  EXPECT_FALSE(tiles.contains(std::vector<int64_t>{1, 5}));
  EXPECT_FALSE(tiles.contains(std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(tiles.contains(std::vector<int64_t>{2, 4}));
}

}  // namespace
}  // namespace tensorsmith::space::tile_lengths_test
