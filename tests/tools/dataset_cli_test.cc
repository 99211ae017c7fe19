// The dataset commands as a user runs them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "cli_support.h"
#include "record/ansor_samples.h"
#include "xml_check.h"

namespace tensorsmith::testing::dataset_cli_test {
namespace {

using Json = nlohmann::json;
using record::testing::conv_line;
using record::testing::dense_line;

std::vector<Json> read_lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<Json> out;
  for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
  return out;
}

class DatasetCli : public ::testing::Test {
 protected:
  DatasetCli() {
    std::ofstream(workloads_) << record::testing::kWorkloads;
    std::ofstream cpu(cpu_);
    for (int i = 0; i < 50; ++i) cpu << dense_line(1 + i % 24) << "\n";
    cpu << "not a record\n";
    std::ofstream(folder_.file("gpu.jsonl")) << conv_line() << "\n";
  }
  CliResult import(const std::string& output) {
    return run_cli({"dataset", "import", cpu_, "v100=" + folder_.file("gpu.jsonl"), "--workloads", workloads_,
                    "-o", output, "--json"});
  }

  TemporaryDirectory folder_;
  const std::string workloads_ = folder_.file("workloads.json");
  const std::string cpu_ = folder_.file("cpu.2024.jsonl");
  const std::string store_ = folder_.file("all.store");
};

TEST_F(DatasetCli, FromRecordsToAPartOfASplit) {
  const CliResult imported = import(store_);
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(Json::parse(imported.out)["records"], 51);
  EXPECT_EQ(Json::parse(imported.out)["corrupt"], 1);
  EXPECT_NE(imported.err.find("cpu.2024.jsonl:51"), std::string::npos) << imported.err;

  const CliResult stats = run_cli({"dataset", "stats", store_, "--verify", "--json"});
  ASSERT_EQ(stats.exit_code, 0) << stats.err;
  EXPECT_EQ(Json::parse(stats.out)["devices"]["cpu"]["records"], 50);
  EXPECT_EQ(Json::parse(stats.out)["devices"]["v100"]["tasks"], 1);
  EXPECT_EQ(run_cli({"dataset", "stats", store_}).exit_code, 0);

  const std::string split = folder_.file("split");
  const CliResult made =
      run_cli({"dataset", "split", store_, "--kind", "by-device", "--test-device", "v100", "-o", split});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string part = folder_.file("test.jsonl");
  const CliResult exported = run_cli(
      {"dataset", "export", store_, "--split", split, "--part", "test", "--features", "--steps", "-o", part});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const auto lines = read_lines(part);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["device"], "v100");
  EXPECT_EQ(lines[0]["seconds"], Json::parse("[0.0005]"));
  ASSERT_EQ(lines[0]["features"].size(), 4u);
  EXPECT_EQ(lines[0]["features"][0].size(), 164u);
}

TEST_F(DatasetCli, ImportsDatabasesOfMetaSchedule) {
  const std::string folder = TENSORSMITH_SOURCE_DIR "/tests/data/metaschedule";
  const std::string records = folder + "/database_tuning_record.json.zst",
                    workloads = folder + "/database_workload.json.zst";
  for (const std::vector<std::string>& files : {std::vector<std::string>{folder, "--device", "a100"},
                                                {"a100=" + folder},
                                                {records, workloads, "--device", "a100"},
                                                {records, "--workloads", workloads, "--device", "a100"}}) {
    std::vector<std::string> arguments = {"dataset", "import", "-o", store_, "--json"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    const CliResult imported = run_cli(arguments);
    ASSERT_EQ(imported.exit_code, 0) << imported.err;
    EXPECT_EQ(Json::parse(imported.out)["records"], 68);
    EXPECT_EQ(Json::parse(imported.out)["failed"], 12);
  }
  const CliResult nameless = run_cli({"dataset", "import", folder, "-o", store_});
  EXPECT_EQ(nameless.exit_code, 1);
  EXPECT_NE(nameless.err.find("--device NAME"), std::string::npos) << nameless.err;
  const CliResult missing =
      run_cli({"dataset", "import", folder_.file("none"), "--device", "a100", "-o", store_});
  EXPECT_NE(missing.err.find("does not exist"), std::string::npos) << missing.err;
}

// Complements `eval --records --device`, which predicts the same programs without a store of
// another device.
TEST_F(DatasetCli, LabelsProgramsOfOtherDevicesWithAModelsTimes) {
  std::ofstream other(folder_.file("k80.jsonl"));
  for (int i = 0; i < 30; ++i) other << dense_line(1 + i % 24) << "\n";
  other << conv_line() << "\n";
  other.close();
  const CliResult imported =
      run_cli({"dataset", "import", folder_.file("k80.jsonl"), "v100=" + folder_.file("gpu.jsonl"),
               "mi50=" + folder_.file("gpu.jsonl"), "--workloads", workloads_, "-o", store_});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const std::string split = folder_.file("split"), model = folder_.file("teacher.model");
  ASSERT_EQ(
      run_cli({"dataset", "split", store_, "--kind", "within-task", "--test", "0", "-o", split}).exit_code,
      0);
  const CliResult trained =
      run_cli({"train", "--model", "roofline", "--store", store_, "--split", split, "-o", model});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string labelled = folder_.file("labelled.store");
  const CliResult done =
      run_cli({"dataset", "label", store_, "--model", model, "--device", "v100", "-o", labelled, "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  // The convolution ran on the V100 itself; dense programs repeat after 24 and are stored once
  // each.
  EXPECT_EQ(Json::parse(done.out),
            Json::parse(R"({"labelled": 24, "measured": 1, "refused": 0, "unknown": 0})"));

  const std::string lines = folder_.file("labelled.jsonl"), predictions = folder_.file("predictions.jsonl");
  ASSERT_EQ(run_cli({"dataset", "export", labelled, "-o", lines}).exit_code, 0);
  const CliResult evaluated =
      run_cli({"eval", "--model", model, "--records", folder_.file("k80.jsonl"), "--workloads", workloads_,
               "--device", "v100", "--predictions", predictions});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  std::multiset<double> expected, found;
  const auto predicted = read_lines(predictions);
  ASSERT_EQ(predicted.size(), 31u);
  for (size_t i = 0; i < 24; ++i) expected.insert(predicted[i]["predicted"].get<double>());
  int measured = 0;
  for (const Json& line : read_lines(lines)) {
    EXPECT_EQ(line["device"], "v100");
    if (line["seconds"] == Json::parse("[0.0005]"))
      ++measured;
    else
      found.insert(line["seconds"][0].get<double>());
  }
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(found, expected);

  // The result is an ordinary store: a student model learns from it.
  ASSERT_EQ(
      run_cli({"dataset", "split", labelled, "--kind", "within-task", "--test", "0", "-o", split, "--force"})
          .exit_code,
      0);
  EXPECT_EQ(
      run_cli({"train", "--model", "roofline", "--store", labelled, "--split", split, "-o", model, "--force"})
          .exit_code,
      0);
  const CliResult cpus =
      run_cli({"dataset", "label", store_, "--model", TENSORSMITH_SOURCE_DIR "/models/cpu.safetensors",
               "--device", "mi50", "-o", folder_.file("cpus.store")});
  EXPECT_NE(cpus.exit_code, 0) << "a teacher that has seen no GPU's program";
  EXPECT_EQ(std::count(cpus.err.begin(), cpus.err.end(), '\n'), 1) << cpus.err;
  const CliResult none =
      run_cli({"dataset", "label", store_, "--model", model, "--device", "xeon-8358", "-o", labelled});
  EXPECT_NE(none.exit_code, 0);
  EXPECT_EQ(std::count(none.err.begin(), none.err.end(), '\n'), 1) << none.err;
}

TEST_F(DatasetCli, FeaturesOneLineAProgram) {
  const std::string output = folder_.file("features.jsonl");
  const CliResult result = run_cli(
      {"dataset", "features", cpu_, "--workloads", workloads_, "--schema", "per-store", "-o", output});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto lines = read_lines(output);
  ASSERT_EQ(lines.size(), 50u);
  for (const Json& line : lines) {
    ASSERT_EQ(line["features"].size(), 2u);
    EXPECT_EQ(line["features"][0].size(), 164u);
  }
}

// Searches on records of a device that is not present.
TEST_F(DatasetCli, ComparesSearchesWithoutMeasuring) {
  const CliResult imported =
      run_cli({"dataset", "import", "xeon-8358=" + cpu_, "--workloads", workloads_, "-o", store_});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const std::string picture = folder_.file("curves.svg"), over_time = folder_.file("seconds.svg");
  const std::vector<std::string> command = {
      "compare",    "--store",          store_,       "--trials", "6",       "--seeds",     "2",
      "--strategy", "random",           "--strategy", "descent",  "--plot",  picture,       "--cost-model",
      "none",       "--least-programs", "10",         "--json",   "--quiet", "--time-plot", over_time};
  const CliResult compared = run_cli(command);
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  const Json methods = Json::parse(compared.out)["methods"];
  ASSERT_EQ(methods.size(), 2u);
  for (const Json& method : methods) {
    EXPECT_EQ(method["tasks"], 1);
    const auto curve = method["curve"].get<std::vector<double>>();
    ASSERT_EQ(curve.size(), 6u);
    EXPECT_TRUE(std::is_sorted(curve.begin(), curve.end()));
    EXPECT_LE(curve.back(), 1);
    EXPECT_GT(curve.front(), 0);
    EXPECT_EQ(method["runs"].size(), 2u);
  }
  for (const std::string& file : {picture, over_time}) EXPECT_EQ(xml_problem_of_file(file), "") << file;
  EXPECT_EQ(run_cli(command).out, compared.out);

  EXPECT_EQ(run_cli({"compare"}).exit_code, 2);
  EXPECT_EQ(run_cli({"compare", "model.onnx", "--store", store_}).exit_code, 2);
  EXPECT_EQ(run_cli({"compare", "--store", store_, "--log", "runs.jsonl"}).exit_code, 2);
  for (const auto& [option, value, says] :
       std::vector<std::array<std::string, 3>>{{"--strategy", "luck", "luck"},
                                               {"--cost-model", "no.model", "no.model"},
                                               {"--strategy", "transfer", "--from"},
                                               {"--trials", "1000", "--trials"},
                                               {"--devices", "k80", "k80"},
                                               {"--plot", cpu_, "cpu.2024"}}) {
    const CliResult refused = run_cli({"compare", "--store", store_, option, value, "--quiet"});
    EXPECT_EQ(refused.exit_code, 1) << option << " " << value;
    EXPECT_NE(refused.err.find(says), std::string::npos) << refused.err;
  }
}

TEST_F(DatasetCli, ErrorsAreOneLine) {
  EXPECT_EQ(run_cli({"dataset", "stats", cpu_}).exit_code, 1);
  EXPECT_EQ(run_cli({"dataset", "stats", folder_.file("none")}).exit_code, 1);
  const CliResult schema =
      run_cli({"dataset", "features", cpu_, "--workloads", workloads_, "--schema", "other", "-o", store_});
  EXPECT_EQ(schema.exit_code, 1);
  EXPECT_NE(schema.err.find("--schema"), std::string::npos);
  EXPECT_EQ(run_cli({"dataset", "import", cpu_, "--workloads", cpu_, "-o", store_}).exit_code, 1);
  const CliResult without = run_cli({"dataset", "import", cpu_, "-o", store_});
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_NE(without.err.find(cpu_), std::string::npos) << without.err;
  EXPECT_NE(without.err.find("add --workloads FILE"), std::string::npos) << without.err;
  // A database is not a file of records.
  const std::string database = folder_.file("own.db");
  std::ofstream(database, std::ios::binary) << std::string("SQLite format 3\0", 16);
  const CliResult mixed =
      run_cli({"dataset", "import", cpu_, database, "--workloads", workloads_, "-o", store_});
  EXPECT_EQ(mixed.exit_code, 1);
  EXPECT_NE(mixed.err.find("own.db: is a record database"), std::string::npos) << mixed.err;
  EXPECT_FALSE(std::filesystem::exists(store_));
}

TEST_F(DatasetCli, SchemasAreListed) {
  const CliResult all = run_cli({"dataset", "schema"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_NE(all.out.find("per-store (164 columns)"), std::string::npos) << all.out;
  // docs/features.md has a row for each group of them.
  std::stringstream page, listed(all.out);
  page << std::ifstream(TENSORSMITH_SOURCE_DIR "/docs/features.md").rdbuf();
  for (std::string line; std::getline(listed, line);) {
    const std::string group = line.substr(0, line.find_first_of(". "));
    EXPECT_NE(page.str().find("`" + group + "`"), std::string::npos) << group;
  }
  const CliResult one = run_cli({"dataset", "schema", "per-store"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_NE(one.out.find("\n| `B0.lines` | slog(x) | cache lines |"), std::string::npos);
  // A heading, a blank line, a sentence, a blank line, two lines of the table's head, and one line
  // per column.
  EXPECT_EQ(std::count(one.out.begin(), one.out.end(), '\n'), 6 + 164) << one.out;
  EXPECT_EQ(one.out.find("\\n"), std::string::npos);
  const CliResult unknown = run_cli({"dataset", "schema", "per-load"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("cpu-nests.columns"), std::string::npos) << unknown.err;
}

// An import killed at any moment leaves the old store, and the next import works.
TEST_F(DatasetCli, KilledImportsLeaveTheOldStore) {
  ASSERT_EQ(import(store_).exit_code, 0);
  std::ofstream big(folder_.file("big.jsonl"));
  for (int i = 0; i < 20000; ++i) big << dense_line(1 + i % 24) << "\n";
  big.close();
  for (int milliseconds : {20, 100, 300}) {
    const pid_t pid =
        start_cli({"dataset", "import", folder_.file("big.jsonl"), "--workloads", workloads_, "-o", store_});
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    const CliResult stats = run_cli({"dataset", "stats", store_, "--verify", "--json"});
    ASSERT_EQ(stats.exit_code, 0) << stats.err;
    const int64_t records = Json::parse(stats.out)["records"];
    EXPECT_TRUE(records == 51 || records == 20000) << records;
  }
}

// Measures here, resumes after a kill, and makes a store whose devices carry their attributes.
TEST_F(DatasetCli, CollectMeasuresAndResumes) {
  const std::string database = folder_.file("own.db");
  const auto collect = [&](const char* records) {
    return std::vector<std::string>{"dataset",    "collect",
                                    "--networks", "mobilenet_v3_small",
                                    "--device",   "local:threads=1",
                                    "-o",         database,
                                    "--records",  records,
                                    "--batch",    "4",
                                    "--slowest",  "5",
                                    "--json",     "--quiet",
                                    "--store",    store_};
  };
  const pid_t pid = start_cli(collect("1000000"));
  // Enough for all parts of a split, however busy the machine is.
  constexpr int64_t kEnough = 16;
  for (int look = 0, records = 0; look < 120 && records < kEnough; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const CliResult info = run_cli({"db", "info", database, "--json"});
    if (info.exit_code == 0) records = Json::parse(info.out)["records"];
  }
  kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_FALSE(std::filesystem::exists(store_));

  const CliResult result = run_cli(collect("10"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json report = Json::parse(result.out);
  EXPECT_EQ(report["measured"], 10);
  EXPECT_EQ(report["database_records"], report["resumed"].get<int64_t>() + 10);
  const CliResult stats = run_cli({"dataset", "stats", store_, "--verify", "--json"});
  ASSERT_EQ(stats.exit_code, 0) << stats.err;
  const Json counts = Json::parse(stats.out);
  // The report explains the difference between measured and stored records by reason.
  const Json stored = report["stored"];
  EXPECT_EQ(stored["records"], counts["records"]);
  EXPECT_EQ(stored["records"].get<int64_t>() + stored["stopped_early"].get<int64_t>() +
                stored["corrupt"].get<int64_t>() + stored["other_versions"].get<int64_t>() +
                stored["repeated"].get<int64_t>(),
            report["database_records"]);
  // A store has all records of the database except single readings.
  const CliResult imported =
      run_cli({"dataset", "import", database, "-o", folder_.file("again.store"), "--json"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const Json import = Json::parse(imported.out);
  EXPECT_EQ(import["records"].get<int64_t>() + import["stopped_early"].get<int64_t>(),
            report["database_records"]);
  EXPECT_EQ(counts["records"], import["records"]);
  EXPECT_GT(counts["records"], 0);
  std::vector<std::string> as_text = collect("1");
  std::erase(as_text, "--json");
  const CliResult text = run_cli(as_text);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("of these records written to " + store_), std::string::npos) << text.out;
  if (stored["stopped_early"] > 0) {
    EXPECT_NE(text.out.find("left out because their timing was stopped early"), std::string::npos)
        << text.out;
  }
  ASSERT_EQ(counts["devices"].size(), 1u);
  EXPECT_NE(counts["devices"].begin().key().find("-1t"), std::string::npos) << stats.out;

  // The collected records train a model in one command, which is compared with the shipped one on
  // tasks that it has not seen.
  const std::string model = folder_.file("mine.model");
  const CliResult trained =
      run_cli({"train", "--from-db", database, "--model", "roofline", "-o", model, "--json", "--quiet"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Json trained_report = Json::parse(trained.out);
  EXPECT_TRUE(trained_report["test"].contains("trained"));
  EXPECT_EQ(trained_report["test"]["trained"]["seen_tasks"], 0);
  EXPECT_EQ(run_cli({"dataset", "stats", model + ".store", "--verify"}).exit_code, 0);
  EXPECT_EQ(
      run_cli({"eval", "--model", model, "--store", model + ".store", "--split", model + ".split"}).exit_code,
      0);
  EXPECT_EQ(
      run_cli({"train", "--from-db", database, "--store", store_, "--split", model + ".split", "-o", model})
          .exit_code,
      2);
  EXPECT_EQ(
      run_cli({"train", "--from-db", folder_.file("none.db"), "-o", folder_.file("no.model")}).exit_code, 1);

  const CliResult foreign =
      run_cli({"dataset", "collect", "--networks", "resnet18", "--device", "v100", "-o", database});
  EXPECT_EQ(foreign.exit_code, 1);
  EXPECT_NE(foreign.err.find("--device v100"), std::string::npos) << foreign.err;
}

// The command that `dataset next` prints measures the chosen tasks, which then count as measured.
TEST_F(DatasetCli, NextTasksOfNetworksAreMeasured) {
  const std::string database = folder_.file("own.db");
  const std::vector<std::string> next = {"dataset",    "next",
                                         "--model",    TENSORSMITH_SOURCE_DIR "/models/cpu.safetensors",
                                         "--device",   "local:threads=1",
                                         "--networks", "bert_tiny",
                                         "--tasks",    "2",
                                         "--json"};
  const CliResult first = run_cli(next);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Json chosen = Json::parse(first.out);
  ASSERT_EQ(chosen["tasks"].size(), 2u);
  EXPECT_EQ(chosen["measured"], 0);
  const std::string key = chosen["tasks"][0]["key"];
  const CliResult collected =
      run_cli({"dataset", "collect", "--networks", "bert_tiny", "--task", key, "--per-task", "2", "--device",
               "local:threads=1", "-o", database, "--quiet", "--json"});
  ASSERT_EQ(collected.exit_code, 0) << collected.err;
  EXPECT_EQ(Json::parse(collected.out)["tasks"], 1);
  std::vector<std::string> again = next;
  again.insert(again.end(), {"--from-db", database});
  const CliResult second = run_cli(again);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const Json rest = Json::parse(second.out);
  EXPECT_EQ(rest["measured"], 1);
  EXPECT_EQ(rest["candidates"].get<int>() + 1, chosen["candidates"].get<int>());
  for (const Json& task : rest["tasks"]) EXPECT_NE(task["key"], key);
  // For the device of another machine, the command must run there.
  std::vector<std::string> elsewhere(next.begin(), next.end() - 1);
  elsewhere[5] = "xeon-8358";
  const CliResult there = run_cli(elsewhere);
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_NE(there.out.find("on that machine"), std::string::npos) << there.out;
  EXPECT_NE(there.out.find("--device local -o"), std::string::npos) << there.out;
  again.pop_back();
  again.push_back(folder_.file("none.db"));
  EXPECT_EQ(run_cli(again).exit_code, 1);
  const CliResult unknown =
      run_cli({"dataset", "collect", "--networks", "bert_tiny", "--task", "nosuchkey", "-o", database});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("--task nosuchkey"), std::string::npos) << unknown.err;
}

// Records exported in TVM's format are imported like records of TVM.
TEST_F(DatasetCli, OwnRecordsGoOutInTheFormatOfTvm) {
  const std::string database = folder_.file("own.db"), lines = folder_.file("own.jsonl"),
                    computes = folder_.file("own_workloads.json");
  const CliResult collected =
      run_cli({"dataset", "collect", "--networks", "bert_tiny", "--per-task", "6", "--batch", "6", "--device",
               "local:threads=1", "-o", database, "--quiet"});
  ASSERT_EQ(collected.exit_code, 0) << collected.err;
  const CliResult alone = run_cli({"db", "export", database, lines, "--format", "tvm"});
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_NE(alone.err.find("--workloads: is missing"), std::string::npos) << alone.err;
  const CliResult exported =
      run_cli({"db", "export", database, lines, "--format", "tvm", "--workloads", computes, "--json"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const Json report = Json::parse(exported.out);
  EXPECT_GT(report["records"], 10) << report;
  EXPECT_EQ(read_lines(lines).size(), report["records"].get<size_t>());
  // Which records can be written depends on the processor; the others are counted by their reasons.
  int64_t explained = 0;
  for (const auto& [reason, records] : report["records_left_out_by_reason"].items())
    explained += records.get<int64_t>();
  EXPECT_EQ(explained, report["records_left_out"]) << report;
  const CliResult imported =
      run_cli({"dataset", "import", "own=" + lines, "--workloads", computes, "-o", store_, "--json"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(Json::parse(imported.out)["records"], report["records"]) << imported.err;
  EXPECT_EQ(Json::parse(imported.out)["corrupt"], 0) << imported.err;
  // The command replaces its own earlier output, but no other file.
  EXPECT_EQ(run_cli({"db", "export", database, lines, "--format", "tvm", "--workloads", computes}).exit_code,
            0);
  EXPECT_EQ(run_cli({"db", "export", database, lines, "--format", "tvm", "--workloads", cpu_}).exit_code, 1);

  const std::string tuned = folder_.file("database_tuning_record.json"),
                    modules = folder_.file("database_workload.json");
  const std::vector<std::string> to_metaschedule = {
      "db", "export", database, tuned, "--format", "metaschedule", "--workloads", modules, "--json"};
  const CliResult second = run_cli(to_metaschedule);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const CliResult read = run_cli({"dataset", "import", tuned, modules, "--device", "xeon-8358", "-o",
                                  folder_.file("again.store"), "--json"});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  EXPECT_GT(Json::parse(second.out)["records"], 10) << second.out;
  EXPECT_EQ(Json::parse(read.out)["records"], Json::parse(second.out)["records"]) << read.err;
  EXPECT_EQ(run_cli(to_metaschedule).exit_code, 0);
}

}  // namespace
}  // namespace tensorsmith::testing::dataset_cli_test
