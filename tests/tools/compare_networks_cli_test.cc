// `compare --whole` on a tiny network, as a user runs it: interrupted, continued, and with parts missing.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli_support.h"
#include "xml_check.h"

namespace tensorsmith::testing::compare_networks_cli_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kTarget = "zoo:bert_tiny:sequence=12";
constexpr const char* kSource = "zoo:bert_tiny:sequence=16";

class CompareNetworks : public ::testing::Test {
 protected:
  // Tunes the networks once for all tests, which work on copies.
  static void SetUpTestSuite() {
    tuned_ = std::make_unique<TemporaryDirectory>();
    CliOptions options;
    options.directory = tuned_->path();
    for (const auto& [network, database, trials] :
         {std::tuple(kSource, "source.db", "40"), std::tuple(kTarget, "target.db", "20")}) {
      const CliResult tuned = run_cli({"tune", network, "-o", "tuned", "--db", database, "--trials", trials,
                                       "--threads", "1", "--skip-end-to-end", "--no-warm-start", "--quiet"},
                                      options);
      ready_ = ready_ && tuned.exit_code == 0;
      EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
    }
  }
  static void TearDownTestSuite() { tuned_.reset(); }

  void SetUp() override {
    ASSERT_TRUE(ready_) << "the networks were not tuned";
    options_.directory = directory_.path();
    fs::copy(tuned_->path(), directory_.path(), fs::copy_options::recursive);
  }
  CliResult cli(const std::vector<std::string>& arguments) const { return run_cli(arguments, options_); }
  std::string read(const std::string& file) const {
    std::ifstream in(directory_.path() / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Names and contents of the finished parts.
  std::map<std::string, std::string> parts() const {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::directory_iterator(directory_.path() / "out/parts"))
      out[entry.path().filename().string()] = read("out/parts/" + entry.path().filename().string());
    return out;
  }
  static std::vector<std::string> compare(const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"compare", kTarget, "--whole",    "out", "--from",    "source.db",
                                    "--from",  kSource, "--seeds",    "1",   "--limit",   "2",
                                    "--batch", "4",     "--programs", "3",   "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::map<std::string, Json> by_method(const Json& result) {
    std::map<std::string, Json> out;
    for (const Json& method : result["networks"][0]["methods"]) out[method["method"]] = method;
    return out;
  }
  void expect_error(const std::vector<std::string>& arguments, const std::string& words) const {
    const CliResult result = cli(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, ::testing::HasSubstr(words));
  }

  static inline std::unique_ptr<TemporaryDirectory> tuned_;
  static inline bool ready_ = true;
  TemporaryDirectory directory_;
  CliOptions options_;
};

TEST_F(CompareNetworks, AnInterruptedComparisonContinues) {
  const CliResult interrupted = interrupt_cli(compare(), "2 of 6", options_);
  EXPECT_NE(interrupted.exit_code, 0);
  const auto before = parts();
  ASSERT_GE(before.size(), 2u) << interrupted.err;
  ASSERT_LT(before.size(), 6u);

  const CliResult whole = cli(compare({"--json", "--quiet"}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto after = parts();
  EXPECT_EQ(after.size(), 6u);
  for (const auto& [name, text] : before) EXPECT_EQ(after.at(name), text) << name << " was made again";

  const Json result = Json::parse(whole.out);
  EXPECT_EQ(Json::parse(read("out/networks.json")), result);
  const auto methods = by_method(result);
  ASSERT_EQ(methods.size(), 6u);
  for (const auto& [name, method] : methods) {
    ASSERT_EQ(method["runs"].size(), 1u) << name;
    const Json& run = method["runs"][0];
    EXPECT_GT(run["trials"], 0) << name;
    EXPECT_DOUBLE_EQ(run["speedup"]["ratio"].get<double>(), method["speedup"]["mean"].get<double>());
    EXPECT_NEAR(
        method["over_random"]["mean"].get<double>(),
        method["speedup"]["mean"].get<double>() / methods.at("random")["speedup"]["mean"].get<double>(),
        1e-9);
    EXPECT_LT(run["worst_difference"], 1) << "the outputs agree with those of the untuned network";
  }
  // There is one source, so both choices are the same, and so are the searches of the same duration.
  for (const char* kind : {"transfer", "search"}) {
    Json heuristic = methods.at(std::string(kind) + "-heuristic")["runs"][0];
    Json gain = methods.at(std::string(kind) + "-gain")["runs"][0];
    heuristic.erase("method");
    gain.erase("method");
    EXPECT_EQ(heuristic, gain);
  }
  const Json& transfer = methods.at("transfer-gain")["runs"][0];
  EXPECT_EQ(transfer["source"], kSource);
  EXPECT_LE(transfer["kernel_seconds"], transfer["untuned_kernel_seconds"]);
  // The search of the same duration ends, with its last measurement, which may begin just before the end and
  // takes long on a busy machine.
  const Json& search = methods.at("search-gain")["runs"][0];
  EXPECT_LT(search["seconds"].get<double>(), 3 * transfer["seconds"].get<double>() + 30);
  // The search that tries to match ends when it does, or at its limit.
  const Json& match = methods.at("search-match")["runs"][0];
  const Json& seconds_to_match = methods.at("transfer-gain")["seconds_to_match"];
  EXPECT_EQ(match["matched"].contains("transfer-gain"), !seconds_to_match.is_null());
  if (seconds_to_match.is_null())
    EXPECT_GT(match["kernel_seconds"], transfer["kernel_seconds"]);
  else
    EXPECT_LE(match["kernel_seconds"], transfer["kernel_seconds"]);
  double last = 1e9;
  for (const Json& point : match["curve"]) {
    EXPECT_LT(point[1].get<double>(), last);
    last = point[1];
  }
  for (const char* plot : {"out/speedups.svg", "out/curves_bert_tiny-sequence=12.svg"})
    EXPECT_EQ(testing::xml_problem(read(plot)), "") << plot;
}

TEST_F(CompareNetworks, FinishedPartsAreNotRepeated) {
  const std::vector<std::string> command = compare({"--json", "--quiet"});
  const CliResult first = cli(command);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto before = parts();
  EXPECT_EQ(cli(command).out, first.out);
  // A missing and a damaged part are made again, and no other.
  for (const auto& [name, text] : before) {
    if (name.find(".search-match.") != std::string::npos) fs::remove(directory_.path() / "out/parts" / name);
    if (name.find(".random.") != std::string::npos)
      std::ofstream(directory_.path() / "out/parts" / name) << "{\"seconds\":";
  }
  const CliResult again = cli(command);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  for (const auto& [name, text] : parts()) {
    const bool made =
        name.find(".search-match.") != std::string::npos || name.find(".random.") != std::string::npos;
    EXPECT_EQ(text != before.at(name), made) << name;
  }

  expect_error(compare({"--quiet", "--cost-model", "none"}), "other settings");
  // Without a finished part, the folder takes the settings of the next command.
  fs::remove_all(directory_.path() / "out/parts");
  const CliResult fresh = interrupt_cli(compare({"--json", "--cost-model", "none"}), "1 of 6", options_);
  EXPECT_EQ(Json::parse(fresh.out)["settings"]["cost_model"], "none") << fresh.err;
}

// The networks are sources of each other, and the shipped language model writes schedules. The results of an
// interrupted comparison are those of the finished parts: here, those of the first network.
TEST_F(CompareNetworks, WithALanguageModel) {
  const CliResult result = interrupt_cli(
      {"compare",   kTarget,     kSource, "--whole", "out",     "--from",  "source.db", "--from",
       "target.db", "--seeds",   "1",     "--limit", "1",       "--batch", "4",         "--programs",
       "2",         "--threads", "1",     "--lm",    "shipped", "--json"},
      "8 of 16", options_);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, ::testing::HasSubstr("Run the same command again to continue"));
  const Json json = Json::parse(result.out);
  EXPECT_EQ(Json::parse(read("out/networks.json")), json);
  EXPECT_EQ(fs::path(json["settings"]["lm"].get<std::string>()).filename(), "cpu.lm");
  const auto methods = by_method(json);
  ASSERT_EQ(methods.size(), 8u);
  EXPECT_EQ(methods.at("transfer-gain")["runs"][0]["source"], kSource);
  EXPECT_GT(methods.at("lm")["runs"][0]["trials"], 0);
  EXPECT_TRUE(methods.at("lm").contains("seconds_to_match"));
}

// A wrong command leaves nothing that the right one would stumble over.
TEST_F(CompareNetworks, RefusesWhatCannotBeCompared) {
  const auto with = [](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"compare", kTarget, "--whole", "new"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect_error(with({"--from", kSource}), "--from");
  expect_error(with({"--from", "source.db"}), "source models");
  expect_error(with({kTarget, "--from", "source.db"}), "twice");
  expect_error(with({"zoo:squeezenet1_1:size=32", "--from", "source.db"}), "without records");
  expect_error(with({"absent.onnx", "--from", "source.db", "--from", kSource}), "absent.onnx");
  expect_error(with({"--from", "source.db", "--from", kSource, "--lm", "absent.lm"}), "absent.lm");
  expect_error(with({"--from", "source.db", "--from", kSource, "--cost-model", "absent"}), "absent");
  expect_error(with({"--from", "source.db", "--from", kSource, "--device", "epyc-7763"}), "epyc-7763");
  EXPECT_FALSE(fs::exists(directory_.path() / "new"));
  expect_error({"compare", kTarget, "--whole", "tuned", "--from", "source.db", "--from", kSource}, "tuned");
  EXPECT_FALSE(fs::exists(directory_.path() / "tuned/parts"));
  EXPECT_EQ(cli(compare({"--trials", "3"})).exit_code, 2);
  EXPECT_EQ(cli(compare({"--force"})).exit_code, 2);
  EXPECT_EQ(cli(with({})).exit_code, 2);
  EXPECT_EQ(cli({"compare", kTarget, "--limit", "3"}).exit_code, 2);
}

}  // namespace
}  // namespace tensorsmith::testing::compare_networks_cli_test
