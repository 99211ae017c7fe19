// Training and evaluation of latency models as a user runs them.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli_support.h"
#include "learn/dataset/split.h"
#include "learn/latency_testing.h"
#include "record/ansor_samples.h"
#include "support/quality.h"
#include "xml_check.h"

namespace tensorsmith::testing::latency_cli_test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string content(const std::string& path) { return record::testing::read_file(path); }
Json last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  const size_t begin = text.rfind('\n', end);
  return Json::parse(text.substr(begin == std::string::npos ? 0 : begin + 1, end + 1));
}

class LatencyCli : public ::testing::Test {
 protected:
  LatencyCli() {
    learn::testing::make_store(store_,
                               {.tasks = 15, .noise = 0.02, .failures = 0.05, .seed = test::test_seed(1)});
    split("by-task", by_task_);
    split("within-task", within_);
  }
  void split(const std::string& kind, const std::string& path) {
    const CliResult made = run_cli({"dataset", "split", store_, "--kind", kind, "-o", path, "--test", "0.2"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  CliResult train(const std::string& kind, const std::string& split, const std::string& output,
                  std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"train",   "--model", kind, "--store", store_,
                                          "--split", split,     "-o", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_cli(arguments);
  }

  TemporaryDirectory folder_;
  const std::string store_ = folder_.file("store"), by_task_ = folder_.file("by-task.split"),
                    within_ = folder_.file("within.split");
};

// TensorBoard shows folders as runs; tests/python/test_tensorboard.py reads the files with
// TensorBoard itself.
TEST_F(LatencyCli, MembersAreRunsOfTensorBoard) {
  const auto event_files = [](const std::filesystem::path& folder) {
    std::map<std::string, int> out;  // by run
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.path().filename().string().starts_with("events.out.tfevents."))
        ++out[entry.path().parent_path().lexically_relative(folder)];
    return out;
  };
  const std::string logs = folder_.file("logs"), whole = folder_.file("whole");
  const CliResult members = train("tensorsmith", within_, folder_.file("m"),
                                  {"--param", "rounds=5", "--param", "members=2", "--param", "hold_out=false",
                                   "--tensorboard", logs, "--quiet"});
  ASSERT_EQ(members.exit_code, 0) << members.err;
  const auto runs = event_files(logs);
  for (const char* run : {"gpu-flat-member-1", "gpu-flat-member-2", "gpu-flat-rank-1", "cpu-other-member-1"})
    EXPECT_EQ(runs.count(run), 1U) << run;
  for (const auto& [run, files] : runs) EXPECT_EQ(files, 1) << run;
  EXPECT_EQ(runs.count("."), 0U);
  const CliResult one = train("xgboost", within_, folder_.file("x"),
                              {"--param", "rounds=5", "--tensorboard", whole, "--quiet"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(event_files(whole), (std::map<std::string, int>{{".", 1}}));
}

TEST_F(LatencyCli, TrainsAndEvaluatesOnAPart) {
  const std::string model = folder_.file("model");
  const CliResult trained =
      train("xgboost", within_, model, {"--param", "rounds=80", "--param", "eta=0.15", "--json"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Json report = Json::parse(trained.out);
  EXPECT_EQ(report["devices"], Json::parse(R"(["v100","xeon-8358"])"));
  EXPECT_GT(report["validation"]["records"], 0);
  EXPECT_THAT(trained.err, HasSubstr("80/80"));

  const std::string predictions = folder_.file("predictions.jsonl"), picture = folder_.file("plot.svg");
  const CliResult evaluated = run_cli({"eval", "--model", model, "--store", store_, "--split", within_,
                                       "--json", "--predictions", predictions, "--plot", picture});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const Json scores = last_line(evaluated.out);
  for (const char* name : {"mape", "mape_median", "rmse", "rmse_log", "top1", "top5", "pairwise", "records",
                           "failed", "tasks", "seen_tasks", "programs_per_second"})
    EXPECT_TRUE(scores[name].is_number()) << name;
  EXPECT_EQ(scores["by_operator"].size(), 3u);
  EXPECT_EQ(scores["by_device"].size(), 2u);
  EXPECT_THAT(evaluated.err, HasSubstr("of these 15 workloads"));

  EXPECT_THAT(content(picture), HasSubstr("xgboost: "));
  EXPECT_EQ(xml_problem_of_file(picture), "");
  // The pairs in the file give the same error.
  std::ifstream in(predictions);
  double errors = 0;
  int64_t measured = 0, failed = 0;
  for (std::string line; std::getline(in, line);) {
    const Json pair = Json::parse(line);
    if (pair["measured"].is_null()) {
      ++failed;
      continue;
    }
    const double truth = pair["measured"];
    errors += std::abs(pair["predicted"].get<double>() - truth) / truth;
    ++measured;
  }
  EXPECT_EQ(scores["records"], measured);
  EXPECT_EQ(scores["failed"], failed);
  EXPECT_GT(failed, 0);
  EXPECT_NEAR(scores["mape"].get<double>(), errors / static_cast<double>(measured), 1e-9);

  // On one device, and as text.
  const CliResult one = run_cli(
      {"eval", "--model", model, "--store", store_, "--split", within_, "--devices", "xeon-8358", "--json"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(last_line(one.out)["records"], scores["by_device"]["xeon-8358"]["records"]);
  const CliResult text = run_cli({"eval", "--model", model, "--store", store_, "--split", within_});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("on v100"));
  // The model may have been trained on the test records of another split.
  const CliResult other = run_cli({"eval", "--model", model, "--store", store_, "--split", by_task_});
  EXPECT_THAT(other.err, HasSubstr("another split"));
}

// Equal predictions of another program get the same scores as the model's, and that program sees no
// times.
TEST_F(LatencyCli, ScoresWhatAnotherProgramPredicts) {
  const std::string model = folder_.file("model"), predictions = folder_.file("predictions.jsonl");
  ASSERT_EQ(train("xgboost", within_, model, {"--param", "rounds=20"}).exit_code, 0);
  const CliResult ours = run_cli({"eval", "--model", model, "--store", store_, "--split", within_, "--json",
                                  "--predictions", predictions});
  ASSERT_EQ(ours.exit_code, 0) << ours.err;
  const std::string rows = folder_.file("test.jsonl"), seconds = folder_.file("seconds");
  const CliResult exported = run_cli({"dataset", "export", store_, "--split", within_, "--part", "test",
                                      "--features", "--without-times", "-o", rows});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_THAT(content(rows), HasSubstr("\"features\""));
  EXPECT_THAT(content(rows), Not(HasSubstr("\"seconds\"")));
  EXPECT_THAT(content(rows), Not(HasSubstr("error_no")));
  std::ifstream in(predictions);
  std::string text;
  for (std::string line; std::getline(in, line);) text += Json::parse(line)["predicted"].dump() + "\n";
  const auto eval = [&](const std::string& lines) {
    std::ofstream(seconds, std::ios::trunc) << lines;
    return run_cli({"eval", "--predicted", seconds, "--store", store_, "--split", within_, "--json"});
  };
  const CliResult theirs = eval(text);
  ASSERT_EQ(theirs.exit_code, 0) << theirs.err;
  for (const char* name : {"mape", "rmse_log", "top1", "pairwise", "records", "failed", "tasks"})
    EXPECT_EQ(last_line(theirs.out)[name], last_line(ours.out)[name]) << name;
  for (const auto& [lines, reason] : {std::pair<std::string, const char*>{text + "1\n", "the part has"},
                                      {"0.5\nfast\n", ":2: is not a positive number of seconds"},
                                      {"-1\n", ":1: is not a positive number"}}) {
    const CliResult refused = eval(lines);
    EXPECT_NE(refused.exit_code, 0);
    EXPECT_THAT(refused.err, HasSubstr(reason));
  }
}

TEST_F(LatencyCli, EvaluatesFilesOfRecords) {
  const std::string model = folder_.file("model"), workloads = folder_.file("workloads.json"),
                    records = folder_.file("records.jsonl");
  ASSERT_EQ(train("roofline", within_, model).exit_code, 0);
  std::ofstream(workloads) << record::testing::kWorkloads;
  std::ofstream out(records);
  for (int i = 0; i < 5000; ++i) out << record::testing::dense_line(1 + i % 24) << "\n";
  out << "not a record\n" << record::testing::dense_line(3, "[[1e+10],4,0.5,1700000000]") << "\n";
  out.close();
  const CliResult evaluated = run_cli({"eval", "--model", model, "--records", records, "--workloads",
                                       workloads, "--device", "xeon8358", "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const Json scores = last_line(evaluated.out);
  EXPECT_EQ(scores["records"], 5000);
  EXPECT_EQ(scores["failed"], 1);
  EXPECT_EQ(scores["corrupt"], 1);
  EXPECT_EQ(scores["tasks"], 1);
  EXPECT_EQ(scores["seen_tasks"], 0);
  EXPECT_TRUE(scores["by_operator"].contains("dense"));
  EXPECT_TRUE(scores["by_device"].contains("xeon-8358"));
  EXPECT_THAT(evaluated.err, HasSubstr("records.jsonl:5001"));
  EXPECT_THAT(evaluated.err, Not(HasSubstr("was trained on")));
}

// A file of records and the store made of it hold the same programs: every kind of model that works
// without libtorch predicts the same for both.
TEST_F(LatencyCli, RecordsAndTheirStoreAgree) {
  const std::string workloads = folder_.file("workloads.json"), records = folder_.file("xeon-8358.jsonl"),
                    store = folder_.file("own.store"), split = folder_.file("own.split"),
                    model = folder_.file("model");
  std::ofstream(workloads) << record::testing::kWorkloads;
  std::ofstream out(records);
  for (int i = 0; i < 24; ++i) out << record::testing::dense_line(1 + i) << "\n";
  out.close();
  ASSERT_EQ(run_cli({"dataset", "import", records, "--workloads", workloads, "-o", store}).exit_code, 0);
  ASSERT_EQ(run_cli({"dataset", "split", store, "--kind", "within-task", "--test", "0", "--validation", "0",
                     "-o", split})
                .exit_code,
            0);
  const auto predictions = [&](std::vector<std::string> of, const std::string& name) {
    const std::string path = folder_.file(name);
    std::vector<std::string> arguments = {"eval", "--model", model, "--predictions", path, "--json"};
    arguments.insert(arguments.end(), of.begin(), of.end());
    const CliResult evaluated = run_cli(arguments);
    EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
    std::vector<double> seconds;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) seconds.push_back(Json::parse(line)["predicted"]);
    return seconds;
  };
  for (const std::string kind : {"draft", "roofline", "xgboost", "tensorsmith"}) {
    std::vector<std::string> more;
    if (kind == "xgboost" || kind == "tensorsmith") more = {"--param", "rounds=20"};
    ASSERT_EQ(train(kind, within_, model, more).exit_code, 0) << kind;
    const auto from_records =
        predictions({"--records", records, "--workloads", workloads, "--device", "xeon-8358"}, "a");
    const auto from_store = predictions({"--store", store, "--split", split, "--part", "train"}, "b");
    EXPECT_EQ(from_records.size(), 24u) << kind;
    EXPECT_EQ(from_records, from_store) << kind;
  }
}

TEST_F(LatencyCli, TheSameSeedTheSameFile) {
  for (const char* kind : {"random", "roofline", "xgboost"}) {
    const std::string a = folder_.file("a"), b = folder_.file("b");
    ASSERT_EQ(train(kind, by_task_, a, {"--seed", "3"}).exit_code, 0);
    ASSERT_EQ(train(kind, by_task_, b, {"--seed", "3", "--threads", "1"}).exit_code, 0);
    EXPECT_EQ(content(a), content(b)) << kind;
  }
}

TEST_F(LatencyCli, InterruptedTrainingGoesOn) {
  const std::string whole = folder_.file("whole"), resumed = folder_.file("resumed");
  const std::vector<std::string> parameters = {"--param", "rounds=400", "--param", "early_stop=0"};
  ASSERT_EQ(train("xgboost", within_, whole, parameters).exit_code, 0);
  std::vector<std::string> arguments = {"train",   "--model", "xgboost", "--store", store_,
                                        "--split", within_,   "-o",      resumed};
  arguments.insert(arguments.end(), parameters.begin(), parameters.end());
  int stopped = 0;
  for (const int signal : {SIGINT, SIGKILL, SIGTERM}) {
    const pid_t pid = start_cli(arguments);
    for (int waited = 0; waited < 200 && !std::filesystem::exists(resumed + ".checkpoint"); ++waited) {
      if (stopped == 0 && signal == SIGINT && waited == 20) break;  // before the first checkpoint
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    kill(pid, signal);
    int status = 0;
    waitpid(pid, &status, 0);
    if (std::filesystem::exists(resumed)) break;  // the training ended before the signal
    ++stopped;
    EXPECT_TRUE(std::filesystem::exists(resumed + ".checkpoint"));
  }
  const CliResult last = run_cli(arguments);
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(content(whole), content(resumed));
  EXPECT_FALSE(std::filesystem::exists(resumed + ".checkpoint"));
}

TEST_F(LatencyCli, GoesOnWithAnotherDevice) {
  const std::string first = folder_.file("first"), second = folder_.file("second");
  ASSERT_EQ(train("xgboost", within_, first, {"--devices", "v100", "--param", "rounds=60"}).exit_code, 0);
  const CliResult tuned = run_cli({"train", "--init", first, "--store", store_, "--split", within_,
                                   "--devices", "xeon8358", "--param", "rounds=60", "-o", second, "--json"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_EQ(Json::parse(tuned.out)["devices"], Json::parse(R"(["v100","xeon-8358"])"));
  const auto error = [&](const std::string& model) {
    const CliResult result = run_cli(
        {"eval", "--model", model, "--store", store_, "--split", within_, "--devices", "xeon8358", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return last_line(result.out)["mape_median"].get<double>();
  };
  test::expect_below("of-first", error(second) / error(first), 0.5);  // .055 +- .020
}

// For a device with some measured tasks, as many other tasks are chosen as requested; with those in
// the training part, others are chosen.
TEST_F(LatencyCli, ChoosesWhatToMeasureNext) {
  const std::string few = folder_.file("few.split"), model = folder_.file("few.model");
  const Json stats = Json::parse(run_cli({"dataset", "stats", store_, "--json"}).out);
  const std::string device = stats["devices"].begin().key();
  const auto tasks = stats["devices"][device]["tasks"].get<int64_t>();
  const auto split_of = [&](const std::vector<std::string>& keys) {
    std::vector<std::string> arguments = {"dataset",       "split", store_, "--kind", "few-tasks",
                                          "--test-device", device,  "-o",   few};
    for (const std::string& key : keys) arguments.insert(arguments.end(), {"--profile-task", key});
    if (keys.empty()) arguments.insert(arguments.end(), {"--profile-tasks", "3"});
    return run_cli(arguments);
  };
  const auto next = [&](const std::string& count) {
    const CliResult result = run_cli({"dataset", "next", "--model", model, "--device", device, "--store",
                                      store_, "--split", few, "--tasks", count, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  };
  ASSERT_EQ(split_of({}).exit_code, 0);
  ASSERT_EQ(train("tensorsmith", few, model, {"--param", "rounds=20"}).exit_code, 0);
  const Json first = next("4");
  EXPECT_EQ(first["measured"], 3);
  EXPECT_EQ(first["candidates"], tasks - 3);
  ASSERT_EQ(first["tasks"].size(), 4u);
  std::vector<std::string> keys;
  for (const Json& task : first["tasks"]) {
    keys.push_back(task["key"]);
    EXPECT_GT(task["uncertainty"].get<double>(), 0) << task;
  }
  ASSERT_EQ(split_of(keys).exit_code, 0);
  const Json second = next("1000");
  EXPECT_EQ(second["measured"], 4);
  EXPECT_EQ(second["tasks"].size(), static_cast<size_t>(tasks - 4));
  for (const Json& task : second["tasks"])
    EXPECT_EQ(std::count(keys.begin(), keys.end(), task["key"].get<std::string>()), 0);
  // The text output gives the command to continue with.
  const CliResult text =
      run_cli({"dataset", "next", "--model", model, "--device", device, "--store", store_, "--split", few});
  EXPECT_THAT(text.out, HasSubstr("train --init " + model));
  // Without the split, all tasks count as measured.
  const CliResult none =
      run_cli({"dataset", "next", "--model", model, "--device", device, "--store", store_});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("has no unmeasured task to choose"));
  EXPECT_EQ(run_cli({"dataset", "next", "--model", model, "--device", device}).exit_code, 1);
  EXPECT_THAT(split_of({"nosuchkey"}).err, HasSubstr("workload 'nosuchkey' is not in the store"));
}

TEST_F(LatencyCli, TableOfModelsAndSplits) {
  std::vector<std::string> arguments = {"eval",    "--table",           "--store", store_,
                                        "--split", "tasks=" + by_task_, "--split", within_};
  for (const std::string seed : {"1", "2"}) {
    const std::string path = folder_.file("random" + seed);
    ASSERT_EQ(train("random", by_task_, path, {"--seed", seed}).exit_code, 0);
    arguments.insert(arguments.end(), {"--model", path});
  }
  for (const std::string device : {"v100", "xeon8358"}) {
    const std::string path = folder_.file("roofline" + device);
    ASSERT_EQ(train("roofline", within_, path, {"--devices", device}).exit_code, 0);
    arguments.insert(arguments.end(), {"--model", "own roofline=" + path});
  }
  const CliResult table = run_cli(arguments);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("| model | device | tasks | within |"));
  EXPECT_THAT(table.out, HasSubstr("| random | mean |"));
  EXPECT_THAT(table.out, HasSubstr("| own roofline | v100 | - | "));
  EXPECT_THAT(table.out, HasSubstr("| own roofline | mean | - | "));
  arguments[7] = "tasks=" + within_;  // splits with the same name share a column
  const CliResult merged = run_cli(arguments);
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("| model | device | tasks |\n"));
  const CliResult foreign =
      run_cli({"eval", "--table", "--store", store_, "--split", within_, "--model", folder_.file("random1")});
  EXPECT_EQ(foreign.exit_code, 1);
  EXPECT_THAT(foreign.err, HasSubstr("none of these splits"));
}

// The tasks of the test part are new to the model; each has two devices and about 38 measured programs.
TEST_F(LatencyCli, LearningCurves) {
  const std::string model = folder_.file("model"), picture = folder_.file("rounds.svg");
  ASSERT_EQ(train("xgboost", by_task_, model, {"--param", "rounds=30"}).exit_code, 0);
  const std::vector<std::string> arguments = {"eval",    "--store", store_,    "--split", by_task_,
                                              "--model", model,     "--model", "random",  "--rounds",
                                              "3",       "--batch", "10",      "--seeds", "2"};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return run_cli(all);
  };
  const CliResult evaluated = run({"--json", "--plot", picture});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const Json report = last_line(evaluated.out);
  const auto tasks = report["tasks"].get<size_t>();
  EXPECT_GE(tasks, 4U);
  EXPECT_EQ(report["left_out"], 0);
  EXPECT_EQ(report["seen_tasks"], 0);
  ASSERT_EQ(report["curves"].size(), 4U);
  ASSERT_EQ(report["runs"].size(), tasks * 2 * 2 * 2);  // models, seeds, pre-trained or not
  for (const Json& curve : report["curves"]) {
    const bool scratch = curve["training"] == "from scratch";
    EXPECT_EQ(curve["top_half"]["mean"][0].is_null(), scratch);
    for (const int round : {1, 2}) {
      double sum = 0;
      for (const Json& one : report["runs"])
        if (one["model"] == curve["model"] && one["training"] == curve["training"])
          sum += one["top_half"][round].get<double>();
      EXPECT_NEAR(curve["top_half"]["mean"][round].get<double>(), sum / (2.0 * static_cast<double>(tasks)),
                  1e-9);
      EXPECT_EQ(curve["rmse"]["mean"][round].is_null(), curve["model"] == "random");
    }
  }
  // Random predictions find half of the faster half.
  EXPECT_GT(report["curves"][0]["top_half"]["mean"][2].get<double>(), 0.6);
  EXPECT_EQ(xml_problem_of_file(picture), "");
  EXPECT_THAT(content(picture), HasSubstr("random, from scratch"));

  const CliResult text = run({"--shuffle"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("the 5 fastest of a round's 10 programs"));
  EXPECT_THAT(text.out, HasSubstr("random, pre-trained"));
  // In a split within tasks, the model has seen the tasks.
  const CliResult seen = run_cli({"eval", "--store", store_, "--split", within_, "--part", "train", "--model",
                                  "random", "--rounds", "2", "--batch", "8", "--seeds", "1"});
  EXPECT_EQ(seen.exit_code, 0) << seen.err;
  EXPECT_THAT(seen.err, HasSubstr("were trained on 30 of these 30 tasks"));
  const CliResult few =
      run_cli({"eval", "--store", store_, "--split", by_task_, "--model", "random", "--rounds", "9"});
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_THAT(few.err, HasSubstr("no task has 576 measured programs"));
  EXPECT_EQ(run({"--table"}).exit_code, 2);
  EXPECT_EQ(
      run_cli({"eval", "--store", store_, "--split", by_task_, "--model", model, "--batch", "8"}).exit_code,
      2);
}

// A search that was stopped after some trials resumes and ends like one that was not stopped.
TEST_F(LatencyCli, HyperparameterSearchGoesOn) {
  const auto arguments = [&](const std::string& log, const std::string& trials) {
    return std::vector<std::string>{"search-hyperparameters",
                                    "--model",
                                    "xgboost",
                                    "--store",
                                    store_,
                                    "--split",
                                    within_,
                                    "--tune",
                                    "max_depth=2..6",
                                    "--tune",
                                    "eta=0.05..0.5:log",
                                    "--tune",
                                    "label=seconds|throughput",
                                    "--param",
                                    "rounds=10",
                                    "--log",
                                    log,
                                    "--trials",
                                    trials,
                                    "--json"};
  };
  const std::string whole = folder_.file("whole.jsonl"), parts = folder_.file("parts.jsonl");
  const CliResult one = run_cli(arguments(whole, "14"));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  ASSERT_EQ(run_cli(arguments(parts, "5")).exit_code, 0);
  std::ofstream(parts, std::ios::app) << "{\"trial\":5,\"par";  // killed while writing
  const CliResult rest = run_cli(arguments(parts, "14"));
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(Json::parse(one.out), Json::parse(rest.out));
  EXPECT_EQ(Json::parse(rest.out)["parameters"]["rounds"], 10);
  std::ifstream in(parts);
  int trials = -1;  // the header line does not count
  for (std::string line; std::getline(in, line); ++trials) EXPECT_TRUE(Json::accept(line)) << line;
  EXPECT_EQ(trials, 14);
  // The log of another search is left alone.
  auto other = arguments(parts, "20");
  other.insert(other.end(), {"--seed", "9"});
  const CliResult refused = run_cli(other);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("not the log of this search"));
  auto bad = arguments(folder_.file("bad.jsonl"), "3");
  bad.insert(bad.end(), {"--tune", "depth=1..2"});
  EXPECT_THAT(run_cli(bad).err, HasSubstr("parameter depth: is unknown"));
  // Invalid parameters leave no log behind, which would block the corrected command.
  for (const char* tune : {"depth=1..2", "max_depth=", "max_depth=-3..5", "label=second"}) {
    auto wrong = arguments(folder_.file("wrong.jsonl"), "3");
    wrong.insert(wrong.end(), {"--tune", tune});
    const CliResult result = run_cli(wrong);
    EXPECT_EQ(result.exit_code, 1) << tune;
    EXPECT_FALSE(std::filesystem::exists(folder_.file("wrong.jsonl"))) << tune << ": " << result.err;
  }
}

TEST_F(LatencyCli, ErrorsAreOneLine) {
  const auto fails = [&](const std::vector<std::string>& arguments, const std::string& text,
                         int exit_code = 1) {
    const CliResult result = run_cli(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(text));
    const auto lines = std::count(result.err.begin(), result.err.end(), '\n');
    EXPECT_TRUE(exit_code != 1 || lines == 1) << result.err;
  };
  const std::string model = folder_.file("model"), out = folder_.file("out");
  ASSERT_EQ(train("roofline", within_, model).exit_code, 0);
  const auto train_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"train", "--store", store_, "--split", within_, "-o", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  fails(train_with({"--model", "oracle"}), "the kinds are roofline");
  fails(train_with({"--model", "xgboost", "--param", "depth=3"}), "parameter depth: is unknown");
  fails(train_with({"--model", "xgboost", "--param", "eta"}), "NAME=VALUE");
  fails(train_with({"--model", "xgboost", "--devices", "tpu"}), "device 'tpu'");
  fails(train_with({"--model", "xgboost", "--devices", "k80"}), "is not in the store");
  fails(train_with({"--model", "xgboost", "--init", model}), "different kind");
  fails(train_with({"--init", by_task_}), "not a model file");
  fails(train_with({}), "--model or --init", 2);
  fails({"train", "--model", "random", "--store", store_, "--split", store_, "-o", out},
        "store: is not a split");
  fails({"train", "--model", "random", "--store", store_, "--split", within_, "-o", folder_.file("no/out")},
        "does not exist");
  EXPECT_FALSE(std::filesystem::exists(out));

  fails({"eval", "--model", store_, "--store", store_, "--split", within_}, "store: ");
  fails({"eval", "--model", model, "--store", store_, "--split", within_, "--part", "tests"}, "'tests'");
  fails({"eval", "--model", model, "--store", store_}, "--split", 2);
  fails({"eval", "--model", model}, "--records, --store or --from-db", 2);
  fails({"eval", "--model", model, "--records", model, "--workloads", model, "--device", "v100"}, "model");
  fails({"eval", "--model", model, "--model", model, "--store", store_, "--split", within_}, "--table", 2);
  // A model with changed bytes.
  std::string bytes = content(model);
  bytes[bytes.size() - 3] ^= 4;
  record::testing::write_file(model, bytes);
  fails({"eval", "--model", model, "--store", store_, "--split", within_}, "is damaged");
}

}  // namespace
}  // namespace tensorsmith::testing::latency_cli_test
