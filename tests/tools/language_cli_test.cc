// A language model from a corpus to a tuned model, as a user makes it: each command uses the output
// of the previous one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli_support.h"

namespace tensorsmith::testing::language_cli_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kNetwork = "zoo:bert_tiny:sequence=16";

class LanguageCli : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TemporaryDirectory>();
    options_.directory = directory_->path();
    const auto ok = [](const std::vector<std::string>& arguments) {
      const CliResult result = cli(arguments);
      ready_ = ready_ && result.exit_code == 0;
      EXPECT_EQ(result.exit_code, 0) << arguments[0] << " " << arguments[1] << ": " << result.err;
    };
    ok({"tune", "zoo:squeezenet1_1:size=32", "-o", "out", "--trials", "60", "--db", "own.db", "--lm", "none",
        "--skip-end-to-end", "--quiet"});
    ok({"lm", "corpus", "zoo:squeezenet1_1:size=32", "--db", "own.db", "--unmeasured", "6", "-o", "a.corpus",
        "--hold-out", kNetwork, "--quiet"});
    ok({"lm", "pretrain", "a.corpus", "-o", "base.lm", "--width", "16", "--heads", "2", "--layers", "1",
        "--epochs", "1", "--quiet"});
    ok({"lm", "finetune", "base.lm", "a.corpus", "-o", "a.lm", "--within", "1", "--epochs", "1", "--quiet"});
  }
  static void TearDownTestSuite() { directory_.reset(); }
  void SetUp() override {
    if (!ready_) GTEST_SKIP() << "there is no model";
  }

  static CliResult cli(const std::vector<std::string>& arguments) { return run_cli(arguments, options_); }
  static int64_t records_of(const std::string& database) {
    const CliResult info = cli({"db", "info", database, "--json"});
    EXPECT_EQ(info.exit_code, 0) << info.err;
    return Json::parse(info.out)["records"].get<int64_t>();
  }
  static std::map<std::string, int> records_by_reason(const std::string& database) {
    const std::string file = database + ".jsonl";
    EXPECT_EQ(cli({"db", "export", database, file}).exit_code, 0);
    std::map<std::string, int> counts;
    std::ifstream lines(directory_->path() / file);
    for (std::string line; std::getline(lines, line);) {
      const Json entry = Json::parse(line);
      if (entry.contains("candidate")) ++counts[entry["candidate"]["reason"].get<std::string>()];
    }
    return counts;
  }
  // Expects one line with the words, and no output.
  static void expect_error(const std::vector<std::string>& arguments, const std::string& words) {
    const CliResult result = cli(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  }

  static std::unique_ptr<TemporaryDirectory> directory_;
  static CliOptions options_;
  static bool ready_;
};
std::unique_ptr<TemporaryDirectory> LanguageCli::directory_;
CliOptions LanguageCli::options_;
bool LanguageCli::ready_ = true;

#ifdef TENSORSMITH_GLOO
// Each process reads its own sentences; only the first writes.
TEST_F(LanguageCli, ProcessesTrainOneModel) {
  const std::vector<std::string> command = {"lm",      "finetune",  "base.lm", "a.corpus", "-o",
                                            "two.lm",  "--within",  "1",       "--epochs", "4",
                                            "--quiet", "--threads", "1"};
  for (const CliResult& result : run_ranks({command, command}, options_))
    EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::exists(directory_->path() / "two.lm"));
  const CliResult written =
      cli({"lm", "generate", "zoo:squeezenet1_1:size=32", "--lm", "two.lm", "--count", "1", "--json"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
}
#endif

TEST_F(LanguageCli, TuneMeasuresWhatItWrites) {
  for (const char* model : {"a.lm", "shipped"}) {
    const std::string database = std::string(model) + ".db";
    const CliResult steered = cli({"tune", kNetwork, "-o", "steered", "--lm", model, "--trials", "60", "--db",
                                   database, "--skip-end-to-end", "--no-warm-start", "--force", "--quiet"});
    ASSERT_EQ(steered.exit_code, 0) << steered.err;
    EXPECT_GT(records_by_reason(database)["written"], 10) << model;
  }
}

// Schedules are saved by one command and measured by another, each once.
TEST_F(LanguageCli, GeneratedSchedulesAreMeasuredLater) {
  const CliResult generated = cli({"lm", "generate", kNetwork, "--lm", "a.lm", "--count", "3",
                                   "--temperature", "2", "-o", "programs.jsonl", "--json"});
  ASSERT_EQ(generated.exit_code, 0) << generated.err;
  std::multiset<std::string> traces;
  std::ifstream lines(directory_->path() / "programs.jsonl");
  for (std::string line; std::getline(lines, line);)
    if (const Json entry = Json::parse(line); entry["type"] == "program")
      traces.insert(entry["trace"].get<std::string>());
  EXPECT_EQ(traces.size(), Json::parse(generated.out)["summary"]["programs"].get<size_t>());

  const std::vector<std::string> command = {"lm",         "measure", "programs.jsonl", "--db",
                                            "written.db", "--quiet", "--json"};
  const CliResult first = cli(command);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Json result = Json::parse(first.out);
  const int64_t measured = records_of("written.db");
  // A check of the untuned schedule of a small task is no trial, but a record.
  EXPECT_GT(result["trials"], 0);
  EXPECT_LE(result["trials"], measured);
  for (const Json& task : result["tasks"]) {
    EXPECT_EQ(task["left_out"], 0);
    EXPECT_LE(task["best_seconds"], task["untuned_seconds"]);
  }
  // All records are of the file or untuned.
  ASSERT_EQ(cli({"db", "export", "written.db", "written.jsonl"}).exit_code, 0);
  std::ifstream records(directory_->path() / "written.jsonl");
  int written = 0;
  for (std::string line; std::getline(records, line);) {
    const Json entry = Json::parse(line);
    if (!entry.contains("candidate")) continue;
    const std::string reason = entry["candidate"]["reason"];
    EXPECT_TRUE(reason == "written" || reason == "default" || reason == "fallback") << reason;
    if (reason != "written") continue;
    EXPECT_GT(traces.count(entry["trace"].get<std::string>()), 0u);
    ++written;
  }
  EXPECT_GT(written, 0);
  const CliResult again = cli(command);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(records_of("written.db"), measured) << "nothing is measured again";

  // Each task's untuned schedule and its likeliest schedule.
  const CliResult few =
      cli({"lm", "measure", "programs.jsonl", "--db", "few.db", "--count", "1", "--json", "--quiet"});
  ASSERT_EQ(few.exit_code, 0) << few.err;
  for (const Json& task : Json::parse(few.out)["tasks"]) EXPECT_LE(task["programs"], 1);
  EXPECT_LE(records_by_reason("few.db")["written"], static_cast<int>(result["tasks"].size()));

  expect_error({"lm", "measure", "a.corpus", "--db", "no.db"}, "lm generate");
  expect_error({"lm", "measure", "absent.jsonl", "--db", "no.db"}, "absent.jsonl");
  std::ofstream(directory_->path() / "damaged.jsonl")
      << "{\"type\":\"programs\",\"v\":1}\n{\"type\":\"program\",\"v\":1}\n";
  std::ofstream(directory_->path() / "cut.jsonl") << "{\"type\":\"programs\",\"v\":1}\n";
  expect_error({"lm", "measure", "cut.jsonl", "--db", "no.db"}, "cut.jsonl");
  expect_error({"lm", "generate", kNetwork, "--lm", "a.lm", "--task", "no such task"}, "no such task");
  expect_error({"lm", "measure", "damaged.jsonl", "--db", "no.db"}, "damaged.jsonl, line 2");
  EXPECT_FALSE(fs::exists(directory_->path() / "no.db"));
  std::ofstream(directory_->path() / "letter") << "dear reader";
  expect_error({"lm", "generate", kNetwork, "--lm", "a.lm", "-o", "letter"}, "letter");
}

// The commands name language models by one rule: a file, or the shipped model. A strategy that needs one gets
// the shipped model without asking.
TEST_F(LanguageCli, TheShippedModelIsNamedTheSameEverywhere) {
  std::vector<Json> methods;
  for (const std::vector<std::string>& given : {std::vector<std::string>{}, {"--lm", "shipped"}}) {
    std::vector<std::string> command = {"compare", kNetwork, "--strategy", "lm", "--trials",     "3",
                                        "--seeds", "1",      "--heaviest", "1",  "--cost-model", "none",
                                        "--json",  "--quiet"};
    command.insert(command.end(), given.begin(), given.end());
    const CliResult compared = cli(command);
    ASSERT_EQ(compared.exit_code, 0) << compared.err;
    methods.push_back(Json::parse(compared.out)["methods"]);
    ASSERT_EQ(methods.back().size(), 1u);
    EXPECT_EQ(fs::path(methods.back()[0]["lm"].get<std::string>()).filename(), "cpu.lm");
    EXPECT_EQ(methods.back()[0]["runs"][0]["trials"], 3);
  }
  EXPECT_EQ(methods[0][0]["lm"], methods[1][0]["lm"]);
  const CliResult written = cli({"lm", "generate", kNetwork, "--lm", "shipped", "--count", "1", "--json"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
}

TEST_F(LanguageCli, EvalIsMeasuredOnceAndComparesWithTheSearch) {
  const std::vector<std::string> command = {
      "lm",      "eval",  kNetwork,     "--lm",    "a.lm",   "--heaviest", "1",
      "--seeds", "1",     "--counts",   "1,3",     "--from", "own.db",     "--reference-trials",
      "6",       "--log", "eval.jsonl", "--quiet", "--json"};
  const CliResult first = cli(command);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Json result = Json::parse(first.out);
  ASSERT_EQ(result["methods"].size(), 4u);  // the search, the model, the estimate, transfer
  EXPECT_EQ(result["methods"][0]["method"], "evolutionary");
  for (size_t m = 1; m < 4; ++m) {
    const Json& best = result["methods"][m]["best_of"];
    ASSERT_EQ(best.size(), 2u);
    // The best of more programs is never slower, and the untuned program is one more.
    EXPECT_GT(best[0]["mean"].get<double>(), 0);
    EXPECT_LE(best[0]["mean"].get<double>(), best[1]["mean"].get<double>());
    EXPECT_LE(best[1]["mean"].get<double>(), best[1]["mean_with_untuned"].get<double>());
  }
  EXPECT_GT(result["written"]["answers"].get<int>(), 0);
  EXPECT_EQ(result["written"]["dead_ends"], 0);
  const Json again = Json::parse(cli(command).out);
  EXPECT_EQ(again["methods"], result["methods"]) << "nothing is measured again";
}

TEST_F(LanguageCli, ALoopLearnsFromWhatItMeasuresAndGoesOn) {
  const std::vector<std::string> command = {"lm",       "loop", "a.lm",     kNetwork,  "--db",     "loop.db",
                                            "--rounds", "3",    "--trials", "40",      "--epochs", "1",
                                            "--within", "1",    "-o",       "loop.lm", "--quiet",  "--json"};
  // The loop is killed in its first or second round.
  const pid_t child = start_cli(command, options_);
  for (int wait = 0; wait < 600 && !fs::exists(directory_->path() / "loop.db"); ++wait) usleep(50'000);
  usleep(2'000'000);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(fs::exists(directory_->path() / "loop.lm"));
  const CliResult result = cli(command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(records_of("loop.db"), 120) << "what the killed loop measured counts";
  for (const auto& [reason, count] : records_by_reason("loop.db"))
    EXPECT_TRUE(reason == "written" || reason == "default" || reason == "transferred") << reason;
  for (const auto& round : Json::parse(result.out)["rounds"]) EXPECT_GE(round["gain_over_untuned"], 1);
  EXPECT_TRUE(fs::exists(directory_->path() / "loop.lm.rounds/round001.lm"));
  EXPECT_EQ(cli({"lm", "generate", kNetwork, "--lm", "loop.lm", "--count", "2", "--json"}).exit_code, 0);
}

TEST_F(LanguageCli, SaysWhatIsWrong) {
  expect_error({"tune", kNetwork, "-o", "no", "--strategy", "random", "--lm", "a.lm", "--trials", "3"},
               "--lm");
  expect_error({"tune", kNetwork, "-o", "no", "--strategy", "lm", "--trials", "3"}, "with --lm");
  expect_error({"tune", kNetwork, "-o", "no", "--strategy", "transfer", "--trials", "3"},
               "`tensorsmith transfer MODEL --from FILE`");
  expect_error({"tune", kNetwork, "-o", "no", "--lm", "absent.lm", "--trials", "3"}, "absent.lm");
  expect_error({"tune", kNetwork, "-o", "no", "--lm", "a.corpus", "--trials", "3"}, "a.corpus");
  expect_error({"compare", kNetwork, "--strategy", "lm", "--lm", "none", "--trials", "3"}, "--lm");
  expect_error({"compare", kNetwork, "--strategy", "random", "--lm", "a.lm", "--trials", "3"},
               "does not use a language model");
  expect_error({"compare", "--store", "no.store", "--strategy", "lm"}, "leave out --store");
  expect_error({"lm", "loop", "base.lm", kNetwork, "--db", "no.db", "--hold-out", kNetwork, "-o", "no.lm"},
               "held out");
  std::ofstream(directory_->path() / "bad.jsonl") << "rubbish\n";
  expect_error({"lm", "eval", kNetwork, "--lm", "a.lm", "--log", "bad.jsonl"}, "bad.jsonl");
  EXPECT_FALSE(fs::exists(directory_->path() / "no"));
}

// Records of other devices: a corpus, a model, new records, ranks.
class LanguageRecordsCli : public LanguageCli {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TemporaryDirectory>();
    options_.directory = directory_->path();
    const std::string samples = TENSORSMITH_SOURCE_DIR "/tests/data/ansor/";
    // The device is the file's name, or is given explicitly.
    records_ = {"--records",   samples + "v100.jsonl.zst",
                "--records",   "xeon-8358=" + samples + "xeon8358.jsonl.zst",
                "--workloads", samples + "workloads.json"};
    const auto ok = [](const std::vector<std::string>& arguments) {
      const CliResult result = cli(arguments);
      ready_ = ready_ && result.exit_code == 0;
      EXPECT_EQ(result.exit_code, 0) << arguments[0] << " " << arguments[1] << ": " << result.err;
    };
    ok(with_records({"lm", "corpus", "--hold-out-share", "20%", "-o", "r.corpus", "--quiet"}));
    ok({"lm", "pretrain", "r.corpus", "-o", "base.lm", "--width", "16", "--heads", "2", "--layers", "1",
        "--epochs", "1", "--quiet"});
    ok({"lm", "finetune", "base.lm", "r.corpus", "-o", "r.lm", "--epochs", "1", "--quiet"});
  }
  static std::vector<std::string> with_records(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), records_.begin(), records_.end());
    return arguments;
  }
  static std::vector<std::string> lines_of(const std::string& file) {
    std::ifstream in(directory_->path() / file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  static std::vector<std::string> records_;
};
std::vector<std::string> LanguageRecordsCli::records_;

TEST_F(LanguageRecordsCli, WhatItWritesReplaysAndIsNotMeasured) {
  const CliResult result =
      cli(with_records({"lm", "generate", "--lm", "r.lm", "--count", "8", "-o", "new.jsonl", "--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json summary = Json::parse(result.out);
  EXPECT_EQ(summary["programs"], summary["replayed"]);
  EXPECT_EQ(summary["dead_ends"], 0);
  EXPECT_EQ(summary["too_long"], 0);
  const auto lines = lines_of("new.jsonl");
  EXPECT_EQ(lines.size(), summary["replayed"].get<size_t>());
  EXPECT_GT(summary["workloads"].get<int>(), 5);
  for (const std::string& line : lines) {
    const Json record = Json::parse(line);
    EXPECT_EQ(record["r"][0], Json::array({0}));
    EXPECT_EQ(record["r"][1], 0);
  }
  // A beam search gives the most likely programs, the same ones each time.
  std::vector<std::vector<std::string>> written;
  for (const char* file : {"beam1.jsonl", "beam2.jsonl"}) {
    const CliResult beam =
        cli(with_records({"lm", "generate", "--lm", "r.lm", "--count", "3", "--beam", "8", "-o", file}));
    ASSERT_EQ(beam.exit_code, 0) << beam.err;
    written.push_back(lines_of(file));
  }
  EXPECT_EQ(written[0], written[1]);
  EXPECT_FALSE(written[0].empty());
  // Written records have no times, so they cannot be ranked.
  expect_error({"lm", "rank", "--lm", "r.lm", "--records", "v100=new.jsonl", "--workloads", records_.back()},
               "measured");
}

TEST_F(LanguageRecordsCli, RanksWhatItHasNotSeen) {
  const CliResult unseen = cli(with_records({"lm", "rank", "--lm", "r.lm", "--json", "--quiet"}));
  ASSERT_EQ(unseen.exit_code, 0) << unseen.err;
  const CliResult seen = cli(with_records({"lm", "rank", "--lm", "r.lm", "--seen", "--json", "--quiet"}));
  ASSERT_EQ(seen.exit_code, 0) << seen.err;
  const Json some = Json::parse(unseen.out)["devices"], all = Json::parse(seen.out)["devices"];
  ASSERT_EQ(all.size(), 2u);
  for (const auto& [device, ranks] : all.items()) {
    ASSERT_TRUE(some.contains(device));
    EXPECT_LT(some[device]["workloads"], ranks["workloads"]);
    for (const char* who : {"likelihood", "chance"}) {
      EXPECT_LE(ranks[who]["top_1"], ranks[who]["top_5"]);
      EXPECT_LE(ranks[who]["top_5"], ranks[who]["top_32"]);
      EXPECT_LE(ranks[who]["top_32"], 1);
    }
  }
}

TEST_F(LanguageRecordsCli, SaysWhatIsWrong) {
  const std::string workloads = records_.back();
  std::ofstream(directory_->path() / "v100.bad") << "rubbish\n";
  std::ofstream(directory_->path() / "v100.empty") << "";
  const auto rank = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"lm", "rank", "--lm", "r.lm"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect_error(rank({"--records", "v100.bad", "--workloads", workloads}),
               "none of the 1 records can be used");
  expect_error(rank({"--records", "v100.empty", "--workloads", workloads}), "empty");
  expect_error(rank({"--records", "v100.absent", "--workloads", workloads}), "v100.absent");
  expect_error(rank({"--records", "toaster=v100.bad", "--workloads", workloads}), "toaster");
  expect_error(rank({"--records", "v100.bad", "--workloads", "absent.json"}), "absent.json");
  expect_error(rank({"--records", "v100.bad"}), "add --workloads FILE");
  const std::string database = TENSORSMITH_SOURCE_DIR "/tests/data/metaschedule";
  expect_error(rank({"--records", database}), "put NAME= before the path");
  expect_error({"lm", "generate", "--lm", "r.lm", "--records", "a100=" + database, "-o", "no.jsonl"},
               "give records of Ansor");
  expect_error(with_records({"lm", "generate", "--lm", "r.corpus", "-o", "no.jsonl"}), "r.corpus");
  expect_error({"lm", "generate", "--lm", "r.lm"}, "--records");
  expect_error(with_records({"lm", "corpus", "--hold-out-share", "100%", "-o", "no.corpus"}), "held-out");
  expect_error(with_records({"lm", "rank", "--lm", "r.lm", "--cost-model", "r.lm"}), "r.lm");
  // Options that exclude each other, or that are missing.
  EXPECT_EQ(cli(with_records({"lm", "generate", "--lm", "r.lm"})).exit_code, 2);
  EXPECT_EQ(cli(with_records({"lm", "generate", kNetwork, "--lm", "r.lm", "-o", "no.jsonl"})).exit_code, 2);
  EXPECT_FALSE(fs::exists(directory_->path() / "no.jsonl"));
}

}  // namespace
}  // namespace tensorsmith::testing::language_cli_test
