// Profiles as a user makes and reads them.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli_support.h"
#include "xml_check.h"

namespace tensorsmith::testing::profile_cli_test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

class ProfileCli : public ::testing::Test {
 protected:
  // Programs of the smallest BERT, a few per task.
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    const CliResult collected =
        run_cli({"dataset", "collect", "--networks", "bert_tiny", "--per-task", "24", "--batch", "24",
                 "--device", "local:threads=1", "-o", database(), "--quiet"});
    ASSERT_EQ(collected.exit_code, 0) << collected.err;
    const CliResult profiled = run_cli({"profile", database(), "--device", "local:threads=1", "--profiler",
                                        "simulation", "--json", "--quiet"});
    ASSERT_EQ(profiled.exit_code, 0) << profiled.err;
    const Json report = Json::parse(profiled.out);
    EXPECT_GT(report["profiled"], 100);
    EXPECT_EQ(report["failed"], 0) << profiled.err;
    for (const char* task : {"matmul", "softmax"}) {
      const CliResult timed = run_cli({"profile", database(), "--device", "local:threads=1", "--profiler",
                                       "timing", "--task", task, "--quiet"});
      ASSERT_EQ(timed.exit_code, 0) << timed.err;
    }
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string database() { return folder_->file("records.db"); }

  static TemporaryDirectory* folder_;
};
TemporaryDirectory* ProfileCli::folder_ = nullptr;

TEST_F(ProfileCli, WhatIsProfiledIsNotProfiledAgain) {
  const CliResult again =
      run_cli({"profile", database(), "--device", "local:threads=1", "--profiler", "simulation", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out)["profiled"], 0);
  const CliResult of_model =
      run_cli({"profile", "zoo:bert_tiny", "--db", database(), "--device", "local:threads=1", "--profiler",
               "simulation", "--per-task", "2", "--json"});
  ASSERT_EQ(of_model.exit_code, 0) << of_model.err;
  EXPECT_GT(Json::parse(of_model.out)["known"], 10);
}

TEST_F(ProfileCli, ExplainsATask) {
  const std::string plot = folder_->file("softmax.svg");
  const CliResult explained = run_cli({"explain", database(), "--task", "softmax", "--plot", plot, "--json"});
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  const Json report = Json::parse(explained.out);
  EXPECT_GE(report["typical_seconds"], report["best_seconds"]);
  EXPECT_GE(report["sentences"].size(), 1U);
  double best = 0, typical = 0;  // busy shares of the busiest part
  for (const Json& demand : report["demands"]) {
    EXPECT_GE(demand["best_seconds"], 0);
    best = std::max(best, demand["best_busy"].get<double>());
    typical = std::max(typical, demand["typical_busy"].get<double>());
  }
  EXPECT_NEAR(best + report["unexplained"]["best_share"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(typical + report["unexplained"]["typical_share"].get<double>(), 1, 1e-9);
  EXPECT_EQ(xml_problem_of_file(plot), "");
  std::stringstream svg;
  svg << std::ifstream(plot).rdbuf();
  EXPECT_THAT(svg.str(), HasSubstr("softmax"));
  const CliResult text = run_cli({"explain", database(), "--task", "softmax"});
  EXPECT_THAT(text.out, HasSubstr("multiply-adds"));
  const CliResult unknown = run_cli({"explain", database(), "--task", "nonsense"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("the profiled tasks are: "));
}

TEST_F(ProfileCli, ATwoStepModelRanksASearch) {
  const std::string model = folder_->file("two_step.model");
  const CliResult trained = run_cli({"train", "--features", "profile", "--from-db", database(), "-o", model,
                                     "--param", "rounds=20", "--param", "latency_rounds=40", "--json"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(Json::parse(trained.out)["model"], "two-step");
  const CliResult predicted = run_cli({"predict", "zoo:bert_tiny", "--device", "local", "--threads", "1",
                                       "--untuned", "--model", model, "--json"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  const CliResult compared =
      run_cli({"compare", "zoo:bert_tiny", "--cost-model", model, "--frozen", "--trials", "8", "--batch", "4",
               "--seeds", "1", "--heaviest", "1", "--threads", "1", "--quiet"});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  const CliResult refused =
      run_cli({"train", "--features", "profile", "--from-db", database(), "-o", model, "--model", "xgboost"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("cannot be trained on profiles"));
}

TEST_F(ProfileCli, AModelOfCountersIsEvaluatedOnProfiledPrograms) {
  const std::vector<std::string> tasks = {"matmul_add_1x128x128_r128", "softmax_1x2x128x128_r128"};
  const CliResult transfer =
      run_cli({"profile", "transfer", database(), "--task", tasks[0], "--task", tasks[1], "--seeds", "1",
               "--draws", "5", "--set-size", "16", "--json", "--quiet"});
  ASSERT_EQ(transfer.exit_code, 0) << transfer.err;
  const Json transferred = Json::parse(transfer.out);
  const std::string model = folder_->file("direct.model");
  int compared = 0;
  for (const std::string& task : tasks) {
    const CliResult trained =
        run_cli({"train", "--features", "profile", "--model", "profile", "--param", "learner=xgboost",
                 "--from-db", database(), "--task", task, "-o", model, "--json"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    EXPECT_EQ(Json::parse(trained.out)["model"], "profile");
    const CliResult evaluated = run_cli(
        {"eval", "--model", model, "--from-db", database(), "--draws", "5", "--set-size", "16", "--json"});
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
    const Json report = Json::parse(evaluated.out);
    EXPECT_THAT(evaluated.err, HasSubstr("trained on"));
    for (const Json& pair : transferred["pairs"]) {
      if (pair["features"] != "profile" || pair["train"] != task) continue;
      for (const Json& one : report["tasks"]) {
        if (one["task"] != pair["test"]) continue;
        EXPECT_FALSE(one["seen"]);
        for (const char* score : {"top_half", "misranked", "top1_gap", "rmse"})
          EXPECT_NEAR(one[score].get<double>(), pair[score].get<double>(), 1e-9) << score;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 2) << transfer.out;
  // Other kinds of models rank the same programs.
  const CliResult shipped = run_cli({"eval", "--model", TENSORSMITH_SOURCE_DIR "/models/cpu.safetensors",
                                     "--from-db", database(), "--task", tasks[0], "--set-size", "16"});
  EXPECT_EQ(shipped.exit_code, 0) << shipped.err;
  EXPECT_THAT(shipped.out, HasSubstr("top 8 of 16 %"));
  const CliResult none = run_cli({"eval", "--model", model, "--from-db", database(), "--task", "nonsense"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("no profiled task whose name begins with this text"));

  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"predict", "zoo:bert_tiny", "--device", "local", "--model", model},
        {"tune", "zoo:bert_tiny", "-o", folder_->file("tuned"), "--seconds", "1", "--cost-model", model,
         "--db", folder_->file("tune.db")}}) {
    const CliResult refused = run_cli(command);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("counters of programs that have run"));
    EXPECT_THAT(refused.err, HasSubstr("--model two-step"));
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
}

TEST_F(ProfileCli, ImportsNsightCompute) {
  const CliResult info =
      run_cli({"db", "export", database(), folder_->file("records.jsonl"), "--fastest", "1"});
  ASSERT_EQ(info.exit_code, 0) << info.err;
  std::string key;
  std::ifstream lines(folder_->file("records.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    if (json["type"] == "record") key = json["key"];
  }
  const std::string csv = folder_->file("ncu.csv");
  std::ofstream(csv)
      << "==PROF== x\n\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"usecond\"\n"
      << "\"0\",\"kernel_" << key << "\",\"12\"\n\"1\",\"other\",\"1\"\n";
  const CliResult imported = run_cli({"profile", "import", database(), csv, "--json"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(Json::parse(imported.out), (Json{{"profiles", 1}, {"launches", 2}, {"unknown", 1}}));
  std::ofstream(csv) << "nothing of this kind\n";
  const CliResult wrong = run_cli({"profile", "import", database(), csv});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("--page raw"));
}

TEST_F(ProfileCli, MistakesAreOneLine) {
  const CliResult none = run_cli({"profile"});
  EXPECT_EQ(none.exit_code, 2);
  const CliResult no_database = run_cli({"profile", "zoo:bert_tiny", "--db", folder_->file("none.db")});
  EXPECT_EQ(no_database.exit_code, 1);
  EXPECT_THAT(no_database.err, HasSubstr("not a record database"));
  const CliResult elsewhere = run_cli({"profile", database(), "--device", "epyc-7763"});
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_THAT(elsewhere.err, HasSubstr("a program must run on this machine for that"));
  const CliResult no_gpu =
      run_cli({"profile", database(), "--device", "local:threads=1", "--profiler", "ncu"});
  EXPECT_EQ(no_gpu.exit_code, 1);
  EXPECT_THAT(no_gpu.err, HasSubstr("works only for NVIDIA GPUs; name one with --device cuda"));
  const CliResult not_here = run_cli({"profile", database(), "--device", "h100"});
  EXPECT_EQ(not_here.exit_code, 1);
  EXPECT_THAT(not_here.err, HasSubstr("the GPU must be an NVIDIA GPU of this machine"));
  const CliResult of_processors =
      run_cli({"profile", database(), "--device", "h100", "--profiler", "simulation"});
  EXPECT_EQ(of_processors.exit_code, 1);
  EXPECT_THAT(of_processors.err, HasSubstr("works only for CPUs"));
  const CliResult few = run_cli({"profile", "transfer", database()});
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_THAT(few.err, HasSubstr("64 profiled programs"));
}

}  // namespace
}  // namespace tensorsmith::testing::profile_cli_test
