#include "learn/latency/tpe.h"

#include <gmock/gmock.h>

#include <cmath>

namespace tensorsmith::learn::tpe_test {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Dimension, IsReadFromText) {
  const auto eta = parse_dimension("eta=0.001..0.3:log").value();
  EXPECT_EQ(eta.name, "eta");
  EXPECT_TRUE(eta.logarithmic);
  EXPECT_FALSE(eta.whole);
  EXPECT_DOUBLE_EQ(eta.low, 0.001);
  EXPECT_DOUBLE_EQ(eta.high, 0.3);
  EXPECT_TRUE(parse_dimension("depth=-4..12").value().whole);
  EXPECT_FALSE(parse_dimension("x=4..12.0").value().whole);
  EXPECT_THAT(parse_dimension("label=a|7|true").value().choices, ElementsAre(Json("a"), Json(7), Json(true)));
  EXPECT_THAT(parse_dimension("one=only").value().choices, ElementsAre(Json("only")));
  for (const char* bad : {"", "x", "=1..2", "x=", "x=1..", "x=2..1", "x=a..b", "x=a||b", "x=1..2:exp",
                          "x=0..99999999999999999999", "x=-1e308..1e308"})
    EXPECT_FALSE(parse_dimension(bad).ok()) << bad;
  EXPECT_THAT(parse_dimension("x=0..1:log").error().message(), HasSubstr("above 0"));
}

std::vector<Dimension> space() {
  return {parse_dimension("x=0..1.0").value(), parse_dimension("y=0.0001..1:log").value(),
          parse_dimension("n=1..20").value(), parse_dimension("kind=a|b|c").value()};
}
// The minimum, 0, is at x = 0.7, y = 0.01, n = 15, kind = b.
double loss(const Json& p) {
  const double x = p.at("x").get<double>() - 0.7, y = std::log10(p.at("y").get<double>()) + 2;
  const double n = p.at("n").get<double>() - 15;
  return x * x * 4 + y * y / 4 + n * n / 100 + (p.at("kind") == "b" ? 0 : 0.5);
}
std::vector<Trial> run(SearchMethod method, uint64_t seed, int trials) {
  std::vector<Trial> done;
  const auto dimensions = space();
  for (int i = 0; i < trials; ++i) {
    const Json p = propose(dimensions, done, method, seed);
    done.push_back({p, loss(p)});
  }
  return done;
}
double best(const std::vector<Trial>& trials) {
  double least = INFINITY;
  for (const Trial& trial : trials) least = std::min(least, trial.loss);
  return least;
}

TEST(Propose, StaysInTheSpace) {
  for (const auto method : {SearchMethod::kRandom, SearchMethod::kTpe}) {
    for (const Trial& trial : run(method, 3, 60)) {
      const Json& p = trial.parameters;
      EXPECT_EQ(p.size(), 4u);
      EXPECT_GE(p.at("x"), 0);
      EXPECT_LE(p.at("x"), 1);
      EXPECT_GE(p.at("y"), 0.0001);
      EXPECT_LE(p.at("y"), 1);
      EXPECT_TRUE(p.at("n").is_number_integer());
      EXPECT_GE(p.at("n"), 1);
      EXPECT_LE(p.at("n"), 20);
    }
  }
}

TEST(Propose, TheSameHistoryGivesTheSame) {
  const auto a = run(SearchMethod::kTpe, 3, 25), b = run(SearchMethod::kTpe, 3, 25);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].parameters, b[i].parameters);
  EXPECT_NE(run(SearchMethod::kTpe, 4, 1)[0].parameters, a[0].parameters);
}

// On a smooth function, the estimators find better points than random search, averaged over seeds.
TEST(Propose, EstimatorsBeatChance) {
  double tpe = 0, random = 0;
  int wins = 0;
  constexpr int kSeeds = 20;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const double a = best(run(SearchMethod::kTpe, seed, 60)), b = best(run(SearchMethod::kRandom, seed, 60));
    tpe += a;
    random += b;
    wins += a < b ? 1 : 0;
  }
  EXPECT_LT(tpe, random / 2);
  EXPECT_GE(wins, 15);
}

// Failed trials count as the worst ones, and have no other effect.
TEST(Propose, FailedTrialsAreAvoided) {
  const std::vector<Dimension> x = {parse_dimension("x=0..1.0").value()};
  std::vector<Trial> done;
  int failed = 0;
  for (int i = 0; i < 80; ++i) {
    const Json p = propose(x, done, SearchMethod::kTpe, 1);
    const bool fails = p.at("x") > 0.5;
    failed += fails && i >= 40 ? 1 : 0;
    done.push_back({p, fails ? INFINITY : 1.0});
  }
  EXPECT_LT(failed, 14);
}

}  // namespace
}  // namespace tensorsmith::learn::tpe_test
