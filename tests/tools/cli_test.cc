// The program as a user sees it: every failure is one line that names the problem and its place,
// with a failing exit code and nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli_support.h"
#include "measure/energy.h"
#include "support/sanitizers.h"

namespace tensorsmith::testing::cli_test {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
// Counts complete lines.
size_t count_lines(const fs::path& path) {
  const std::string text = read_file(path);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}
void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class Cleanup {
 public:
  explicit Cleanup(std::function<void()> action) : action_(std::move(action)) {}
  ~Cleanup() { action_(); }
  Cleanup(const Cleanup&) = delete;
  Cleanup& operator=(const Cleanup&) = delete;

 private:
  std::function<void()> action_;
};

// Expects one line on stderr that contains all the words, exit code 1 and nothing on stdout.
void expect_one_line_error(const CliResult& result, const std::vector<std::string>& words) {
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.err.rfind("tensorsmith: error: ", 0), 0u) << result.err;
  EXPECT_TRUE(result.out.empty()) << result.out;
  for (const auto& word : words) EXPECT_NE(result.err.find(word), std::string::npos) << result.err;
}

class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (onnx_test_data().empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
    case_ = onnx_test_data() / "pytorch-converted/test_Conv2d_padding";
    model_ = (case_ / "model.onnx").string();
    options_.directory = directory_.path();
  }
  CliResult cli(const std::vector<std::string>& arguments) const { return run_cli(arguments, options_); }
  std::vector<std::string> left_behind() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_.path()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  TemporaryDirectory directory_;
  CliOptions options_;
  fs::path case_;
  std::string model_;
};

TEST_F(Cli, EveryCommandHasHelp) {
  for (const char* command : {"tasks", "tune", "compile", "run", "bench", "db", "devices", "zoo"}) {
    const CliResult result = cli({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_NE(result.out.find("--help"), std::string::npos) << command;
  }
  EXPECT_EQ(cli({"--version"}).exit_code, 0);
}

TEST_F(Cli, WrongUsageIsOneLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"zoo"}, "see 'tensorsmith zoo --help'"},
      {{"compile"}, "model is required"},
      {{"run", "out", "--rtol"}, "see 'tensorsmith run --help'"},
      {{"tune", model_, "--seconds", "abc"}, "'abc' is not a time"},
      {{"tune", model_, "--serve", "--no-measure"}, "--no-measure"}};
  for (const auto& [words, reason] : wrong) {
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.err.rfind("tensorsmith: error: ", 0), 0U) << result.err;
    EXPECT_NE(result.err.find(reason), std::string::npos) << result.err;
  }
}

TEST_F(Cli, WrongUsageIsExitCode2) {
  const CliResult bare = cli({});
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_NE(bare.out.find("tune"), std::string::npos) << "the commands are shown";
  EXPECT_EQ(cli({"tune"}).exit_code, 2);
  EXPECT_EQ(cli({"frobnicate"}).exit_code, 2);
  EXPECT_EQ(cli({"tune", model_, "-o", "out", "--trials", "-3"}).exit_code, 2);
  EXPECT_EQ(cli({"tune", model_, "-o", "out", "--seconds", "nan"}).exit_code, 2);
}

TEST_F(Cli, TuneCompileRunCheck) {
  const CliResult tune =
      cli({"tune", model_, "-o", "out", "--trials", "6", "--json", "--quiet", "--seed", "3"});
  ASSERT_EQ(tune.exit_code, 0) << tune.err;
  const auto report = nlohmann::json::parse(tune.out);
  EXPECT_LE(report["trials"].get<int>(), 6);
  EXPECT_GE(report["trials"].get<int>(), 2);
  EXPECT_GT(report["estimate"]["ratio"].get<double>(), 0);
  // The tasks got all measurements. The untuned schedule of a small task does not count as a trial of the run.
  int allocated = 0;
  for (const auto& task : report["tasks"]) allocated += task["allocation"]["trials"].get<int>();
  EXPECT_GE(allocated, report["trials"].get<int>());
  const CliResult check = cli({"run", "out", "--check", case_.string()});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  // The database now has the schedules, so compiling needs no measurement.
  EXPECT_EQ(cli({"compile", model_, "-o", "again"}).exit_code, 0);
  EXPECT_EQ(cli({"run", "again", "--check", case_.string()}).exit_code, 0);
  EXPECT_EQ(cli({"run", "again", "--reference", model_}).exit_code, 0);
  EXPECT_EQ(cli({"bench", "again", "--seconds", "0.1"}).exit_code, 0);
  const auto profile = cli({"bench", "again", "--seconds", "0.1", "--profile"});
  EXPECT_EQ(profile.exit_code, 0);
  EXPECT_NE(
      profile.out.find("; sum of the tasks measured alone, repeatedly, with their data in the caches: "),
      std::string::npos);
  EXPECT_EQ(cli({"db", "check", "tensorsmith.db"}).exit_code, 0);
  EXPECT_EQ(left_behind(), (std::vector<std::string>{"again", "out", "tensorsmith.db"}));
}

TEST_F(Cli, TunesByAnObjective) {
  expect_one_line_error(
      cli({"tune", model_, "-o", "no", "--trials", "2", "--quiet", "--objective", "latency *"}),
      {"objective 'latency *': 1:10: expected an expression, found the end of the text"});
  expect_one_line_error(cli({"tune", model_, "-o", "no", "--trials", "2", "--quiet", "--objective", "speed"}),
                        {"1:1: no variable is called speed", "latency, memory"});
  EXPECT_EQ(cli({"tune", model_, "-o", "no", "--no-measure", "--objective", "memory"}).exit_code, 2);
  EXPECT_FALSE(fs::exists(directory_.path() / "no"));

  expect_one_line_error(
      cli({"tune", model_, "-o", "no", "--trials", "2", "--quiet", "--objective", "energy", "--flush-cache"}),
      {"objective 'energy': energy cannot be measured with empty caches"});
  if (!measure::EnergyMeter::open().ok())
    expect_one_line_error(cli({"tune", model_, "-o", "no", "--trials", "2", "--quiet", "--objective",
                               "latency + 0.1 * energy"}),
                          {measure::kEnergyFolder, "choose an objective without energy"});

  const std::vector<std::string> words{
      "tune",   model_,   "-o", "out",         "--trials",
      "6",      "--seed", "3",  "--objective", "latency * (1 + memory / 1e6)",
      "--quiet"};
  const CliResult shown = cli(words);
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* text : {"untuned cost", "cost: latency * (1 + memory / 1e6), of one call"})
    EXPECT_NE(shown.out.find(text), std::string::npos) << shown.out;
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const CliResult tune = cli(as_json);
  ASSERT_EQ(tune.exit_code, 0) << tune.err;
  const auto report = nlohmann::json::parse(tune.out);
  EXPECT_EQ(report["objective"], "latency * (1 + memory / 1e6)");
  for (const auto& task : report["tasks"]) {
    EXPECT_LE(task["best_cost"].get<double>(), task["default_cost"].get<double>());
    EXPECT_GE(task["best_cost"].get<double>(), task["best_seconds"].get<double>());
  }
  EXPECT_EQ(cli({"run", "out", "--check", case_.string()}).exit_code, 0);
  EXPECT_EQ(cli({"compile", model_, "-o", "again", "--objective", "memory"}).exit_code, 0);
  EXPECT_EQ(cli({"run", "again", "--check", case_.string()}).exit_code, 0);
  expect_one_line_error(cli({"compile", model_, "-o", "no", "--objective", "(memory"}),
                        {"objective '(memory': 1:8: expected ')', found the end of the text"});
  EXPECT_EQ(cli({"compile", model_, "-o", "no", "--objective", "memory", "--untuned"}).exit_code, 2);
}

// The timeline has an event for each run and, within it, one for each call of the manifest.
TEST_F(Cli, TracesRuns) {
  ASSERT_EQ(cli({"compile", model_, "-o", "out", "--untuned"}).exit_code, 0);
  const CliResult traced = cli({"bench", "out", "--trace", "runs.json", "--runs", "3", "--threads", "1"});
  ASSERT_EQ(traced.exit_code, 0) << traced.err;
  std::ifstream manifest(directory_.path() / "out/manifest.json"), trace(directory_.path() / "runs.json");
  const size_t calls = nlohmann::json::parse(manifest)["calls"].size();
  std::vector<std::pair<double, double>> runs, kernels;
  const nlohmann::json document = nlohmann::json::parse(trace);
  for (const auto& event : document["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    (event["cat"] == "run" ? runs : kernels).emplace_back(begin, end);
  }
  ASSERT_EQ(runs.size(), 3u);
  ASSERT_EQ(kernels.size(), 3 * calls);
  double last = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto& [begin, end] = kernels[k];
    EXPECT_GE(begin, last - 1e-3);
    EXPECT_GE(begin, runs[k / calls].first - 1e-3);
    EXPECT_LE(end, runs[k / calls].second + 1e-3);
    last = end;
  }
  EXPECT_EQ(cli({"bench", "out", "--trace", "runs.json", "--runs", "1"}).exit_code,
            0);  // its own output may be replaced
  std::ofstream(directory_.path() / "letter.json") << "dear reader";
  const CliResult refused = cli({"bench", "out", "--trace", "letter.json"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("letter.json"), std::string::npos) << refused.err;
}

// Several models in one run, schedules transferred between models, and runs without measuring: all
// models compute the expected results.
TEST_F(Cli, SeveralModelsTransferAndNoMeasuring) {
  const fs::path other = onnx_test_data() / "pytorch-converted/test_Conv2d";
  const CliResult both = cli({"tune", model_, (other / "model.onnx").string(), "-o", "both", "--trials", "8",
                              "--quiet", "--json", "--until-gain", "0.1%"});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_EQ(nlohmann::json::parse(both.out)["models"].size(), 2u);
  EXPECT_EQ(cli({"run", "both/test_Conv2d_padding", "--check", case_.string()}).exit_code, 0);
  EXPECT_EQ(cli({"run", "both/test_Conv2d", "--check", other.string()}).exit_code, 0);

  const CliResult transfer = cli({"transfer", (other / "model.onnx").string(), "-o", "transferred", "--from",
                                  model_, "--quiet", "--json"});
  ASSERT_EQ(transfer.exit_code, 0) << transfer.err;
  const auto report = nlohmann::json::parse(transfer.out);
  EXPECT_EQ(report["ended_by"], "exhausted");
  EXPECT_EQ(report["source_models"][0]["name"], model_);
  EXPECT_EQ(cli({"run", "transferred", "--check", other.string()}).exit_code, 0);
  EXPECT_EQ(cli({"transfer", model_, "-o", "no"}).exit_code, 2);
  expect_one_line_error(cli({"transfer", model_, "-o", "no", "--from", "none.db", "--quiet"}), {"none.db"});

  for (const std::string device : {"local", "epyc-7763"}) {
    const CliResult unmeasured = cli({"tune", (other / "model.onnx").string(), "-o", "unmeasured-" + device,
                                      "--no-measure", "--json", "--device", device, "--db", "new.db"});
    ASSERT_EQ(unmeasured.exit_code, 0) << unmeasured.err;
    EXPECT_NE(unmeasured.err.find("new.db does not exist"), std::string::npos) << unmeasured.err;
    for (const auto& task : nlohmann::json::parse(unmeasured.out)["tasks"])
      EXPECT_GE(task["expected_gain"].get<double>(), 1);
  }
  EXPECT_EQ(cli({"run", "unmeasured-local", "--check", other.string()}).exit_code, 0);
  EXPECT_EQ(cli({"tune", model_, "-o", "unmeasured-local", "--no-measure", "--cost-model", "none"}).exit_code,
            0);
  expect_one_line_error(cli({"tune", model_, "-o", "no", "--no-measure", "--cost-model", "none.safetensors"}),
                        {"none.safetensors"});
  EXPECT_EQ(cli({"tune", model_, "-o", "no", "--no-measure", "--seconds", "3"}).exit_code, 2);
  EXPECT_EQ(cli({"tune", model_, "-o", "no", "--until-gain", "200%"}).exit_code, 2);

  const CliResult tasks = cli({"tasks", model_, "--json"});
  const std::string key = nlohmann::json::parse(tasks.out)["tasks"][0]["key"];
  ASSERT_EQ(cli({"db", "export", "tensorsmith.db", "one.jsonl", "--of", model_}).exit_code, 0);
  std::ifstream lines(directory_.path() / "one.jsonl");
  size_t records = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line);
    if (!entry.contains("trace")) continue;
    EXPECT_NE(line.find(key), std::string::npos);
    ++records;
  }
  EXPECT_GT(records, 0u);
  ASSERT_EQ(cli({"db", "export", "tensorsmith.db", "rest.jsonl", "--without", model_}).exit_code, 0);
  std::ifstream rest(directory_.path() / "rest.jsonl");
  for (std::string line; std::getline(rest, line);) EXPECT_EQ(line.find(key), std::string::npos);
  // A task is named by its key or by the beginning of its name.
  const std::string name = nlohmann::json::parse(tasks.out)["tasks"][0]["name"];
  ASSERT_EQ(cli({"db", "export", "tensorsmith.db", "key.jsonl", "--task", key}).exit_code, 0);
  ASSERT_EQ(
      cli({"db", "export", "tensorsmith.db", "name.jsonl", "--of", model_, "--task", name, "--task", key})
          .exit_code,
      0);
  for (const char* file : {"key.jsonl", "name.jsonl"})
    EXPECT_EQ(read_file(directory_.path() / file), read_file(directory_.path() / "one.jsonl"))
        << "the model has one task";
  for (const std::string text : {"no such task", ""})
    expect_one_line_error(cli({"db", "export", "tensorsmith.db", "no.jsonl", "--task", text}), {"--task"});
  expect_one_line_error(
      cli({"db", "export", "tensorsmith.db", "no.jsonl", "--without", model_, "--task", key}), {"--task"});
  EXPECT_EQ(left_behind(), (std::vector<std::string>{"both", "key.jsonl", "name.jsonl", "one.jsonl",
                                                     "rest.jsonl", "tensorsmith.db", "transferred",
                                                     "unmeasured-epyc-7763", "unmeasured-local"}));
}

// Searches are measured once: the log then has them, except for what a kill cut off.
TEST_F(Cli, ComparedSearchesAreKeptInALog) {
  ASSERT_EQ(cli({"tune", model_, "-o", "out", "--trials", "4", "--quiet"}).exit_code, 0);
  const std::vector<std::string> command = {
      "compare", model_,           "--heaviest", "1",     "--trials",   "4",          "--seeds",
      "2",       "--strategy",     "random",     "--log", "runs.jsonl", "--strategy", "transfer",
      "--from",  "tensorsmith.db", "--again",    "2,4",   "--quiet",    "--json"};
  const CliResult first = cli(command);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto methods = nlohmann::json::parse(first.out)["methods"];
  ASSERT_EQ(methods.size(), 3u);  // random, transfer, random with a warm start
  for (const auto& method : methods) {
    ASSERT_EQ(method["again"].size(), 2u);
    EXPECT_LE(method["again"][0]["mean"], method["again"][1]["mean"]) << "of two programs and of four";
  }
  EXPECT_DOUBLE_EQ(methods[0]["again"][1]["mean"], 1) << "against itself";
  EXPECT_EQ(methods[1]["warm"], true);
  const fs::path log = directory_.path() / "runs.jsonl";
  const auto size = fs::file_size(log);
  EXPECT_EQ(cli(command).out, first.out);  // the same times: nothing was measured again
  EXPECT_EQ(fs::file_size(log), size);
  const size_t lines = count_lines(log);
  fs::resize_file(log, size - 5);
  ASSERT_EQ(count_lines(log), lines - 1);
  const CliResult again = cli(command);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  // The leaders of one seed were timed again. Their shares can be the same: 1 if untuned is the
  // fastest.
  EXPECT_EQ(count_lines(log), lines - 1 + methods.size());
  std::ofstream(log) << "rubbish\n";
  expect_one_line_error(cli(command), {"runs.jsonl"});
  fs::remove(log);
  expect_one_line_error(cli({"compare", model_, "--device", "epyc-7763", "--quiet"}), {"epyc-7763"});
  expect_one_line_error(cli({"compare", model_, "--trials", "4", "--again", "5", "--quiet"}),
                        {"--again", "4"});
  EXPECT_EQ(left_behind(), (std::vector<std::string>{"out", "tensorsmith.db"}));
}

TEST_F(Cli, WrongOutputsAreFound) {
  ASSERT_EQ(cli({"compile", model_, "-o", "out", "--untuned"}).exit_code, 0);
  const fs::path other = onnx_test_data() / "pytorch-converted/test_Conv2d/test_data_set_0";
  fs::create_directory(directory_.path() / "set");
  fs::copy(case_ / "test_data_set_0/input_0.pb", directory_.path() / "set");
  fs::copy(other / "output_0.pb", directory_.path() / "set");
  const CliResult result = cli({"run", "out", "--check", "set"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("differ"), std::string::npos) << result.err;
}

TEST_F(Cli, MissingAndForeignFiles) {
  expect_one_line_error(cli({"tasks", "missing.onnx"}), {"missing.onnx"});
  expect_one_line_error(cli({"tasks", "."}), {"."});
  write_file(directory_.path() / "text.onnx", "this is not a model\n");
  expect_one_line_error(cli({"tasks", "text.onnx"}), {"text.onnx"});
  write_file(directory_.path() / "empty.onnx", "");
  expect_one_line_error(cli({"tasks", "empty.onnx"}), {"empty.onnx"});
  const std::string bytes = read_file(model_);
  write_file(directory_.path() / "cut.onnx", bytes.substr(0, bytes.size() / 2));
  expect_one_line_error(cli({"tune", "cut.onnx", "-o", "out", "--trials", "2"}), {"cut.onnx"});
  EXPECT_FALSE(fs::exists(directory_.path() / "out"));
  expect_one_line_error(cli({"run", "nowhere"}), {"nowhere"});
  expect_one_line_error(cli({"db", "check", "nothing.db"}), {"nothing.db"});
  expect_one_line_error(cli({"devices", "show", "toaster"}), {"toaster"});
  expect_one_line_error(cli({"devices", "show", "./toaster"}), {"toaster", "cannot open"});
}

TEST_F(Cli, DeviceFiles) {
  const CliResult shown = cli({"devices", "show", "epyc-7452"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  write_file(directory_.path() / "board.json", shown.out);
  EXPECT_EQ(cli({"devices", "show", "board.json"}).out, shown.out);
  EXPECT_EQ(nlohmann::json::parse(cli({"devices", "show", "board.json:threads=4"}).out)["cores"], 4);
  write_file(directory_.path() / "broken.json", "{\"name\": 3}");
  expect_one_line_error(cli({"compile", model_, "-o", "out", "--untuned", "--device", "broken.json"}),
                        {"broken.json", "'name' has the wrong type"});
  const auto list = nlohmann::json::parse(cli({"devices", "list", "--json"}).out);
  EXPECT_EQ(list[0]["name"], "local");
  EXPECT_GT(list.size(), 20u);
  EXPECT_EQ(list[0]["key"].get<std::string>().size(), 32u);
}

TEST_F(Cli, GpusOfThisMachineAreDevices) {
  expect_one_line_error(cli({"devices", "show", "opencl:x"}), {"opencl:x", "the number of the device"});
  const CliResult shown = cli({"devices", "show", "opencl"});
  if (shown.exit_code != 0) {
    expect_one_line_error(shown, {"OpenCL", "install"});
    EXPECT_FALSE(std::getenv("TENSORSMITH_REQUIRE_OPENCL")) << shown.err;
    GTEST_SKIP() << shown.err;
  }
  EXPECT_EQ(nlohmann::json::parse(shown.out)["arch"], "opencl");
  EXPECT_THAT(cli({"devices", "list"}).out, ::testing::HasSubstr("\nopencl:0 "));
  expect_one_line_error(
      cli({"compile", model_, "-o", "out", "--untuned", "--device", "opencl", "--threads", "2"}),
      {"--threads", "applies to CPUs only"});
}

TEST_F(Cli, ZooNetworksAreModels) {
  const auto names = nlohmann::json::parse(cli({"zoo", "list", "--json"}).out);
  EXPECT_GT(names.size(), 20u);
  const CliResult exported = cli({"zoo", "export", "bert_tiny", "--sequence", "6", "-o", "tiny.onnx"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_THAT(exported.out,
              ::testing::MatchesRegex("tiny\\.onnx: bert_tiny with random weights, [0-9]+\\.[0-9] MB\n"));
  const CliResult compiled = cli({"compile", "tiny.onnx", "-o", "out", "--untuned"});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const CliResult run = cli({"run", "out", "--reference", "zoo:bert_tiny:sequence=6"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  // The exported file and the zoo name give the same tasks; another batch gives others.
  const auto tasks = [&](const std::vector<std::string>& models) {
    std::vector<std::string> words = {"tasks", "--json"};
    words.insert(words.end(), models.begin(), models.end());
    return nlohmann::json::parse(cli(words).out)["tasks"];
  };
  const auto one = tasks({"tiny.onnx"});
  const auto same = tasks({"tiny.onnx", "zoo:bert_tiny:sequence=6"});
  ASSERT_EQ(same.size(), one.size());
  EXPECT_EQ(same[0]["calls"]["tiny.onnx"], one[0]["calls"]);
  EXPECT_EQ(same[0]["calls"]["zoo:bert_tiny:sequence=6"], one[0]["calls"]);
  EXPECT_GT(tasks({"tiny.onnx", "zoo:bert_tiny:sequence=6:batch=2"}).size(), one.size());

  const auto table = [&](const std::vector<std::string>& models) {
    std::vector<std::string> words = {"tasks"};
    words.insert(words.end(), models.begin(), models.end());
    return cli(words).out;
  };
  const std::string small = "zoo:squeezenet1_1:size=32", large = "zoo:squeezenet1_1:size=64";
  EXPECT_THAT(table({small}), ::testing::HasSubstr(" (1x3x32x32, 64x3x3x3"));
  for (const char* shapes : {" (1x3x32x32, 64x3x3x3", " (1x3x64x64, 64x3x3x3"})
    EXPECT_THAT(table({small, large}), ::testing::HasSubstr(shapes));

  expect_one_line_error(cli({"tasks", "zoo:resnet51"}), {"resnet51", "resnet50"});
  expect_one_line_error(cli({"tasks", "zoo:alexnet:size=16"}), {"alexnet", "too small"});
  expect_one_line_error(cli({"tasks", "zoo:bert_tiny", "--shape", "input_ids=1x4"}),
                        {"the shape of 'input_ids'", "sequence=L"});
  expect_one_line_error(cli({"zoo", "export", "bert_tiny", "-o", "no/such/folder.onnx"}),
                        {"no/such/folder.onnx"});
}

TEST_F(Cli, ForeignDatabases) {
  write_file(directory_.path() / "noise.db", std::string(10000, 'x'));
  expect_one_line_error(cli({"tune", model_, "-o", "out", "--trials", "2", "--db", "noise.db"}),
                        {"noise.db"});
  EXPECT_EQ(read_file(directory_.path() / "noise.db"), std::string(10000, 'x'))
      << "a foreign file was changed";
  EXPECT_FALSE(fs::exists(directory_.path() / "out"));
}

TEST_F(Cli, OutputPlacesAreCheckedFirst) {
  write_file(directory_.path() / "file", "x");
  expect_one_line_error(cli({"tune", model_, "-o", "file", "--trials", "2"}), {"file"});
  fs::create_directory(directory_.path() / "mine");
  write_file(directory_.path() / "mine/precious", "x");
  expect_one_line_error(cli({"compile", model_, "-o", "mine", "--untuned"}), {"mine"});
  EXPECT_TRUE(fs::exists(directory_.path() / "mine/precious"));
}

TEST_F(Cli, NoSpaceLeavesNothingHalfWritten) {
  if (TENSORSMITH_THREAD_SANITIZER) GTEST_SKIP() << "the thread sanitizer itself writes temporary files";
  CliOptions small = options_;
  small.file_size_limit = 2048;  // less than any kernel library
  const CliResult result = run_cli({"compile", model_, "-o", "out", "--untuned"}, small);
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(left_behind().empty()) << left_behind().front();
}

// A real full file system: lld once mapped its output into memory, and writing to it raised SIGBUS.
TEST_F(Cli, FullDisks) {
  if (TENSORSMITH_THREAD_SANITIZER) GTEST_SKIP() << "the thread sanitizer itself writes temporary files";
  const fs::path disk = directory_.path() / "disk";
  fs::create_directory(disk);
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "may not mount a file system";
  const Cleanup unmount([&] { umount(disk.c_str()); });
  ASSERT_EQ(cli({"tune", model_, "-o", "out", "--trials", "2", "--quiet"}).exit_code, 0);
  write_file(disk / "filler", std::string(size_t{1} << 20, 'x'));  // fills the remaining space
  expect_one_line_error(cli({"compile", model_, "-o", "disk/out", "--untuned"}),
                        {"disk/out", "No space left"});
  expect_one_line_error(
      cli({"tune", model_, "-o", "again", "--trials", "2", "--quiet", "--db", "disk/new.db"}),
      {"disk/new.db", "disk is full"});
  expect_one_line_error(cli({"db", "export", "tensorsmith.db", "disk/records.jsonl"}),
                        {"disk/records.jsonl", "No space left"});
  EXPECT_FALSE(fs::exists(directory_.path() / "again"));
  EXPECT_EQ(std::distance(fs::directory_iterator(disk), fs::directory_iterator()), 1) << "only the filler";
  // Compiling needs no temporary files.
  CliOptions full_temporary = options_;
  full_temporary.environment = {"TMPDIR=" + disk.string()};
  EXPECT_EQ(run_cli({"compile", model_, "-o", "again", "--untuned"}, full_temporary).exit_code, 0);
  EXPECT_EQ(run_cli({"run", "again", "--check", case_.string()}, full_temporary).exit_code, 0);
}

TEST_F(Cli, UnwritableFolders) {
  CliOptions nobody = options_;
  nobody.drop_privileges = true;
  fs::permissions(directory_.path(), fs::perms(0777));
  fs::create_directory(directory_.path() / "locked");
  fs::permissions(directory_.path() / "locked", fs::perms(0555));
  fs::copy(model_, directory_.path() / "secret.onnx");
  fs::permissions(directory_.path() / "secret.onnx", fs::perms::none);
  expect_one_line_error(run_cli({"compile", "secret.onnx", "-o", "out", "--untuned"}, nobody),
                        {"secret.onnx", "Permission denied"});
  expect_one_line_error(run_cli({"compile", model_, "-o", "locked/out", "--untuned"}, nobody),
                        {"locked", "not writable"});
  expect_one_line_error(
      run_cli({"tune", model_, "-o", "out", "--trials", "2", "--db", "locked/new.db"}, nobody),
      {"locked/new.db", "not writable"});
  EXPECT_EQ(left_behind(), (std::vector<std::string>{"locked", "secret.onnx"}));
}

TEST_F(Cli, FailuresLeaveNoFoldersOnTheWay) {
  write_file(directory_.path() / "text.onnx", "this is not a model\n");
  expect_one_line_error(cli({"compile", "text.onnx", "-o", "out", "--untuned"}), {"text.onnx"});
  const std::vector<std::string> several = {"tune", "text.onnx", "none.onnx", "-o", "both", "--trials", "2"};
  expect_one_line_error(cli(several), {"text.onnx"});
  expect_one_line_error(cli({"compile", model_, "-o", "text.onnx/out", "--untuned"}), {"text.onnx"});
  expect_one_line_error(cli({"compile", model_, "-o", "", "--untuned"}), {"-o"});
  EXPECT_EQ(left_behind(), (std::vector<std::string>{"text.onnx"}));
}

// A folder whose parent is missing is refused before the model is read: the missing model is not
// noticed. -o of several models is the parent of their folders and is made.
TEST_F(Cli, ParentsOfOutputFoldersMustExist) {
  const std::vector<std::vector<std::string>> commands = {
      {"tune", "none.onnx", "--trials", "2"}, {"tune", "none.onnx", "other.onnx", "--trials", "2"},
      {"tune", "none.onnx", "--no-measure"},  {"transfer", "none.onnx", "--from", "none.db"},
      {"compile", "none.onnx", "--untuned"},  {"compile", "none.onnx", "--untuned", "--emit", "c"}};
  for (std::vector<std::string> command : commands) {
    for (const char* place : {"no/such", "no/such/"}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"-o", place});
      expect_one_line_error(cli(words),
                            {place, "the folder '", "/no' does not exist", "give -o another path"});
    }
  }
  EXPECT_TRUE(left_behind().empty());
  fs::create_directory(directory_.path() / "there");
  EXPECT_EQ(cli({"compile", model_, "-o", "there/out/", "--untuned"}).exit_code, 0);
}

TEST_F(Cli, ForeignRecordFilesMakeNoDatabase) {
  write_file(directory_.path() / "notes.txt", "one\ntwo\nthree\n");
  expect_one_line_error(cli({"db", "import", "new.db", "notes.txt"}), {"notes.txt", "db export"});
  expect_one_line_error(cli({"db", "import", "new.db", "missing.jsonl"}), {"missing.jsonl"});
  EXPECT_EQ(left_behind(), (std::vector<std::string>{"notes.txt"}));
}

TEST_F(Cli, InterruptedTuningKeepsWhatItHas) {
  const pid_t pid = start_cli({"tune", model_, "-o", "out", "--seconds", "60", "--quiet"}, options_);
  // Wait until some records exist before sending the signal.
  for (int i = 0; i < 600; ++i) {
    usleep(100'000);
    const CliResult info = cli({"db", "info", "tensorsmith.db", "--json"});
    if (info.exit_code == 0 && nlohmann::json::parse(info.out)["records"].get<int>() > 0) break;
  }
  kill(pid, SIGINT);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status;
  EXPECT_EQ(cli({"run", "out", "--check", case_.string()}).exit_code, 0);
  EXPECT_EQ(left_behind(), (std::vector<std::string>{"out", "tensorsmith.db"}));
}

TEST_F(Cli, InterruptedCompilationLeavesNothing) {
  const fs::path model = fs::path(TENSORSMITH_TEST_MODELS) / "fastestdet/model.onnx";
  for (const int milliseconds : {20, 100, 200, 400}) {
    const pid_t pid = start_cli({"compile", model.string(), "-o", "out", "--untuned"}, options_);
    usleep(static_cast<useconds_t>(milliseconds) * 1000);
    kill(pid, SIGINT);
    int status = 0;
    waitpid(pid, &status, 0);
    const std::vector<std::string> left = left_behind();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      EXPECT_EQ(left, (std::vector<std::string>{"out"}));  // finished before the signal
      fs::remove_all(directory_.path() / "out");
    } else {
      EXPECT_TRUE(left.empty()) << left.front();
    }
  }
}

TEST_F(Cli, CorruptCompiledModels) {
  ASSERT_EQ(cli({"compile", model_, "-o", "out", "--untuned"}).exit_code, 0);
  for (const char* name : {"manifest.json", "weights.bin", "kernels.so"}) {
    const fs::path file = directory_.path() / "out" / name;
    const std::string bytes = read_file(file);
    write_file(file, bytes.substr(0, bytes.size() / 2));
    expect_one_line_error(cli({"run", "out", "--check", case_.string()}), {"out"});
    fs::remove(file);
    expect_one_line_error(cli({"run", "out", "--check", case_.string()}), {"out"});
    write_file(file, bytes);
  }
  EXPECT_EQ(cli({"run", "out", "--check", case_.string()}).exit_code, 0);
}

TEST_F(Cli, ShapesAreAskedForByName) {
  const fs::path model = fs::path(TENSORSMITH_TEST_MODELS) / "super_resolution_10/model.onnx";
  expect_one_line_error(cli({"tasks", model.string()}), {"input", "batch_size", "--shape"});
  EXPECT_EQ(cli({"tasks", model.string(), "--shape", "input=1x1x224x224"}).exit_code, 0);
  expect_one_line_error(cli({"tasks", model.string(), "--shape", "input=1x1"}), {"input"});
  expect_one_line_error(
      cli({"tasks", model.string(), "--shape", "input=1x1x224x224", "--shape", "inputs=1x1x224x224"}),
      {"inputs"});
}

}  // namespace
}  // namespace tensorsmith::testing::cli_test
