#include "engine/tune/tune_options.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace tensorsmith::engine::tune_options_test {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

std::string reason(const Json& values) {
  TuneModelOptions options;
  const Status status = set_tune_options(values, options);
  return status.ok() ? "" : status.error().message();
}

TEST(TuneOptions, AreSetByName) {
  TuneModelOptions options;
  ASSERT_TRUE(set_tune_options({{"trials", 7},
                                {"seconds", 2},
                                {"epsilon", 0.5},
                                {"winograd", false},
                                {"sources", {"a.db", "b.db"}},
                                {"cost_model", "none"},
                                {"seed", ~uint64_t{0}}},
                               options)
                  .ok());
  EXPECT_EQ(options.search.trials, 7);
  EXPECT_EQ(options.search.seconds, 2);
  EXPECT_EQ(options.search.epsilon, 0.5);
  EXPECT_FALSE(options.schedules.winograd);
  EXPECT_THAT(options.sources, ::testing::ElementsAre("a.db", "b.db"));
  EXPECT_EQ(options.cost_model.model, "none");
  EXPECT_EQ(options.search.seed, ~uint64_t{0});
}

TEST(TuneOptions, WrongValuesAreRefused) {
  EXPECT_EQ(reason({{"trails", 7}}), "trails: is not a setting of a search");
  EXPECT_EQ(reason({{"batch", 0}}), "batch: 0 is not a number from 1 to 1024");
  EXPECT_EQ(reason({{"seed", -1}}), "seed: -1 is not a number from 0 to 1.8446744073709552e+19");
  EXPECT_EQ(reason({{"trials", 1.5}}), "trials: 1.5 is not a value of type integer");
  EXPECT_EQ(reason({{"frozen", 1}}), "frozen: 1 is not a value of type boolean");
  EXPECT_EQ(reason({{"sources", {"a", 1}}}), "sources: [\"a\",1] is not a value of type array");
}

// The values of a schema's defaults are those of the options, so setting them changes nothing.
TEST(TuneOptions, TheSchemaHasTheDefaults) {
  const Json schema = tune_options_schema();
  Json defaults = Json::object();
  for (const auto& [name, property] : schema["properties"].items()) defaults[name] = property["default"];
  EXPECT_EQ(defaults.size(), tune_options().size());
  EXPECT_EQ(reason(defaults), "");
  EXPECT_EQ(defaults["batch"], search::TuneOptions().batch);
  EXPECT_EQ(schema["properties"]["batch"]["maximum"], 1024);
  EXPECT_EQ(schema["properties"]["sources"]["items"]["type"], "string");
}

TEST(TuneOptions, ReportsNameOnlyLimitsThatAreSet) {
  TuneModelOptions options;
  EXPECT_THAT(reported_tune_options(options), Not(Contains(Key("trials"))));
  EXPECT_THAT(reported_tune_options(options), Contains(Pair("seed", "0")));
  options.search.trials = kMostTrials;
  EXPECT_THAT(reported_tune_options(options), Not(Contains(Key("trials"))));
  options.search.trials = 64;
  options.search.until_gain = 0.01;
  options.language_model = "own.lm";
  const auto reported = reported_tune_options(options);
  EXPECT_THAT(reported, Contains(Pair("trials", "64")));
  EXPECT_THAT(reported, Contains(Pair("until gain", "0.01")));
  EXPECT_THAT(reported, Contains(Pair("language model", "own.lm")));
}

}  // namespace
}  // namespace tensorsmith::engine::tune_options_test
