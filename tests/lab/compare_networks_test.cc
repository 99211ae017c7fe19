// The methods and the scores of a comparison of whole networks. tests/tools/compare_networks_cli_test.cc runs one.
#include "lab/compare_networks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tensorsmith::lab::compare_networks_test {
namespace {

NetworkRun made(const std::string& network, const std::string& method, uint64_t seed, double speedup) {
  NetworkRun run;
  run.network = network;
  run.method = method;
  run.seed = seed;
  run.whole = {speedup, 1, 0};
  return run;
}

TEST(CompareNetworks, AMethodRunsAfterTheOneWhoseDurationItHas) {
  for (const bool language_model : {false, true}) {
    std::set<std::string> before;
    size_t like = 0;
    for (const NetworkMethod& method : network_methods(language_model)) {
      if (method.kind == NetworkMethodKind::kSameTime) {
        ++like;
        EXPECT_EQ(before.count(method.like), 1u) << method.name;
      }
      EXPECT_TRUE(before.insert(method.name).second) << method.name << " occurs twice";
    }
    EXPECT_EQ(like, language_model ? 3u : 2u);
    EXPECT_EQ(before.count("lm"), language_model ? 1u : 0u);
    // The search that tries to match comes after all that it can match.
    EXPECT_EQ(network_methods(language_model).back().kind, NetworkMethodKind::kUntilMatch);
  }
}

TEST(CompareNetworks, ScoresAreGeometricMeansOverTheSeeds) {
  const std::vector<NetworkRun> runs = {made("a", "random", 0, 0.5), made("a", "random", 1, 0.25),
                                        made("a", "search", 0, 2),   made("a", "search", 1, 8),
                                        made("b", "search", 0, 3),   made("a", "search", 2, 4)};
  const NetworkScore score = network_score(runs, "a", "search");
  EXPECT_DOUBLE_EQ(score.mean, 4);  // (2 * 8 * 4)^(1/3)
  EXPECT_DOUBLE_EQ(score.low, 2);
  EXPECT_DOUBLE_EQ(score.high, 8);
  // Each run is compared with the random start of its seed; seed 2 has none.
  const NetworkScore over_random = network_score(runs, "a", "search", "random");
  EXPECT_DOUBLE_EQ(over_random.low, 4);
  EXPECT_DOUBLE_EQ(over_random.high, 32);
  EXPECT_NEAR(over_random.mean, 11.313708, 1e-6);
  EXPECT_EQ(network_score(runs, "b", "search", "random").mean, 0);
  EXPECT_EQ(network_score(runs, "c", "search").mean, 0);
}

}  // namespace
}  // namespace tensorsmith::lab::compare_networks_test
