// No command destroys its inputs or foreign files at the place of an output.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "cli_support.h"
#include "graph/onnx_model_builder.h"
#include "learn/latency_testing.h"
#include "record/ansor_samples.h"
#include "record/database.h"

namespace tensorsmith::testing::output_files_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;
using record::testing::read_file;
using record::testing::write_file;

constexpr const char* kThesis = "The only copy of a thesis.\n";

class OutputFiles : public ::testing::Test {
 protected:
  OutputFiles() {
    options_.directory = folder_.path();
    graph::testing::ModelBuilder builder;
    builder.input("x", {2, 3}).output("y").node("Relu", {"x"}, {"y"});
    write_file(folder_.file("m.onnx"), builder.bytes());
  }
  CliResult cli(const Words& words) const { return run_cli(words, options_); }
  void make_store() const {
    learn::testing::make_store(folder_.file("s"), {.tasks = 6});
    ASSERT_EQ(cli({"dataset", "split", "s", "-o", "sp", "--kind", "within-task"}).exit_code, 0);
  }
  void make_database() const {
    auto database = record::Database::open(folder_.file("a.db"));
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)->add({record::testing::make_record(1), record::testing::make_record(2)}).ok());
  }
  void make_records() const {
    write_file(folder_.file("w.json"), record::testing::kWorkloads);
    std::string lines;
    for (int i = 0; i < 20; ++i) lines += record::testing::dense_line(1 + i % 24) + "\n";
    write_file(folder_.file("cpu.jsonl"), lines);
  }

  // Returns every file with its content, and every folder and link.
  std::map<std::string, std::string> snapshot() const {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      const std::string name = fs::relative(entry.path(), folder_.path());
      out[name] = entry.is_symlink()     ? "-> " + fs::read_symlink(entry.path()).string()
                  : entry.is_directory() ? "/"
                                         : read_file(entry.path());
    }
    return out;
  }

  // Expects one line on stderr with these words, exit code 1, and no change of any file.
  void expect_refused(const Words& command, const Words& words) {
    SCOPED_TRACE(::testing::PrintToString(command));
    const auto before = snapshot();
    const CliResult result = cli(command);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_EQ(result.err.rfind("tensorsmith: error: ", 0), 0U) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& word : words) EXPECT_THAT(result.err, HasSubstr(word));
    EXPECT_TRUE(snapshot() == before) << "files changed: " << result.err;
  }
  void expect_done(const Words& command) {
    const CliResult result = cli(command);
    EXPECT_EQ(result.exit_code, 0) << ::testing::PrintToString(command) << result.err;
  }

  TemporaryDirectory folder_;
  CliOptions options_;
};

// --- directories of compiled models

TEST_F(OutputFiles, OnlyCompiledModelsAreReplaced) {
  const fs::path extension = folder_.path() / "extension";
  fs::create_directory(extension);
  write_file(extension / "manifest.json", R"({"manifest_version": 3, "name": "My extension"})");
  expect_refused({"compile", "m.onnx", "-o", "extension", "--untuned"}, {"extension", "manifest.json"});
  write_file(extension / "background.js", "code();\n");
  expect_refused({"compile", "m.onnx", "-o", "extension", "--untuned"}, {"extension"});
  // The output is checked before any work: the missing model is not noticed.
  expect_refused({"compile", "missing.onnx", "-o", "extension/", "--untuned"}, {"extension"});
  expect_refused({"tune", "missing.onnx", "-o", "./extension", "--trials", "2"}, {"extension"});
  expect_refused({"tune", "missing.onnx", "-o", "/proc/model", "--trials", "2"},
                 {"/proc: ", "give -o another"});

  expect_done({"compile", "m.onnx", "-o", "out", "--untuned"});
  const std::string manifest = read_file(folder_.file("out/manifest.json"));
  const auto refused_with = [&](const std::string& word) {
    expect_refused({"compile", "m.onnx", "-o", "out", "--untuned"}, {"out", word});
    expect_refused({"tune", "m.onnx", "-o", "out", "--trials", "2"}, {"out", word});
  };
  write_file(folder_.file("out/thesis.txt"), kThesis);
  refused_with("'thesis.txt'");
  fs::remove(folder_.path() / "out/thesis.txt");
  fs::create_directory(folder_.path() / "out/figures");
  refused_with("'figures'");
  fs::remove(folder_.path() / "out/figures");
  fs::rename(folder_.path() / "out/kernels.so", folder_.path() / "kernels");
  fs::create_symlink("../kernels", folder_.path() / "out/kernels.so");
  refused_with("'kernels.so'");
  fs::rename(folder_.path() / "kernels", folder_.path() / "out/kernels.so");
  write_file(folder_.file("out/manifest.json"), manifest.substr(0, manifest.size() / 2));
  refused_with("damaged");
  auto json = nlohmann::ordered_json::parse(manifest);
  json["weights_hash"] = json["kernels_hash"] = "";
  write_file(folder_.file("out/manifest.json"), json.dump());
  refused_with("manifest.json");
  fs::remove(folder_.path() / "out/manifest.json");
  refused_with("no manifest.json");

  // A model of another format version is still a compiled model.
  json["format_version"] = 999;
  write_file(folder_.file("out/manifest.json"), json.dump());
  expect_done({"compile", "m.onnx", "-o", "out", "--untuned"});
  fs::create_directory_symlink("out", folder_.path() / "link");
  for (const char* name : {"out", "out/", "./out", "link", "extension/../out"})
    expect_done({"compile", "m.onnx", "-o", name, "--untuned"});
  EXPECT_TRUE(fs::is_symlink(folder_.path() / "link"));
  expect_done({"run", "out", "--reference", "m.onnx"});
  fs::create_symlink("nowhere", folder_.path() / "broken");
  expect_refused({"compile", "m.onnx", "-o", "broken", "--untuned"}, {"symbolic link to a"});
  expect_refused({"compile", "m.onnx", "-o", ".", "--untuned"}, {"."});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 5);
}

// A compilation killed at any moment leaves the old model or the new one.
TEST_F(OutputFiles, KilledReplacementsLeaveAModel) {
  expect_done({"compile", "m.onnx", "-o", "out", "--untuned"});
  Rng rng(7);
  for (int i = 0; i < 12; ++i) {
    const pid_t pid = start_cli({"compile", "m.onnx", "-o", "out", "--untuned"}, options_);
    usleep(static_cast<useconds_t>(rng.uniform_int(1'000, 150'000)));
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    expect_done({"run", "out", "--reference", "m.onnx"});
  }
  expect_done({"compile", "m.onnx", "-o", "out", "--untuned"});
}

// --- outputs that are inputs

TEST_F(OutputFiles, DatabasesAreNotOverwritten) {
  make_database();
  fs::create_symlink("a.db", folder_.path() / "link");
  fs::create_hard_link(folder_.path() / "a.db", folder_.path() / "hard");
  fs::create_directory(folder_.path() / "sub");
  const std::string absolute = folder_.file("a.db");
  for (const std::string& name : Words{"a.db", "./a.db", "sub/../a.db", "link", "hard", absolute, "a.db/"}) {
    expect_refused({"db", "export", "a.db", name}, {"DATABASE"});
    expect_refused({"db", "export", "a.db", name, "--force"}, {"DATABASE"});
    expect_refused({"db", "import", "a.db", name}, {"DATABASE"});
    expect_refused({"dataset", "import", "a.db", "-o", name}, {"-o"});
    expect_refused({"dataset", "import", "a.db", "-o", name, "--force"}, {"-o"});
    expect_refused({"dataset", "collect", "--networks", "m.onnx", "-o", "a.db", "--store", name},
                   {"--store"});
  }
  expect_refused({"db", "export", "a.db", "a.db-journal", "--force"}, {"a.db-journal", "belongs to"});
  expect_refused({"compile", "m.onnx", "-o", "a.db"}, {"a.db"});
  expect_done({"db", "check", "a.db"});
}

TEST_F(OutputFiles, ModelsAreNotOverwritten) {
  expect_refused({"compile", "m.onnx", "-o", "m.onnx", "--untuned"}, {"MODEL"});
  expect_refused({"tune", "m.onnx", "-o", "out", "--db", "m.onnx", "--trials", "2"}, {"--db", "MODEL"});
  expect_refused({"tune", "m.onnx", "-o", "out", "--db", "./out", "--trials", "2"}, {"--db", "-o"});
  expect_refused({"tune", "m.onnx", "-o", "out", "--db", "out/new.db", "--trials", "2"}, {"--db", "-o"});
  expect_refused({"dataset", "collect", "--networks", "./m.onnx", "-o", "m.onnx"}, {"--networks"});
  expect_refused({"dataset", "collect", "--networks", "./m.onnx", "-o", "new.db", "--store", "new.db"},
                 {"-o", "--store"});
  // A database in the model's directory would be removed with it.
  fs::create_directory(folder_.path() / "out");
  expect_refused({"tune", "m.onnx", "-o", "out", "--db", "out/new.db", "--trials", "2"}, {"--db", "-o"});
  expect_refused({"compile", "out/../m.onnx", "-o", folder_.path(), "--untuned"}, {"MODEL"});
}

TEST_F(OutputFiles, StoresAreNotOverwritten) {
  make_store();
  expect_done({"train", "--model", "roofline", "--store", "s", "--split", "sp", "-o", "model", "--quiet"});
  for (const std::string& name : Words{"s", "./s", folder_.file("s"), "s/"}) {
    expect_refused({"dataset", "export", "s", "-o", name, "--force"}, {"-o"});
    expect_refused({"dataset", "split", "s", "-o", name, "--force"}, {"-o"});
    expect_refused({"train", "--model", "roofline", "--store", "s", "--split", "sp", "-o", name, "--force"},
                   {"-o", "--store"});
    expect_refused(
        {"train", "--model", "roofline", "--store", "s", "--split", "sp", "-o", "new", "--checkpoint", name},
        {"--checkpoint", "--store"});
    expect_refused(
        {"eval", "--model", "model", "--store", "s", "--split", "sp", "--predictions", name, "--force"},
        {"--predictions", "--store"});
    expect_refused({"eval", "--model", "model", "--store", "s", "--split", "sp", "--plot", name, "--force"},
                   {"--plot", "--store"});
    expect_refused({"eval", "--rounds", "2", "--model", "model", "--store", "s", "--split", "sp", "--plot",
                    name, "--force"},
                   {"--plot", "--store"});
    expect_refused({"search-hyperparameters", "--model", "xgboost", "--store", "s", "--split", "sp", "--tune",
                    "eta=0.1..0.2", "--log", name},
                   {"--log", "--store"});
  }
  expect_refused({"dataset", "export", "s", "--split", "sp", "--part", "test", "-o", "sp"}, {"--split"});
  expect_refused({"train", "--model", "roofline", "--store", "s", "--split", "sp", "-o", "sp"}, {"--split"});
  expect_refused(
      {"train", "--model", "roofline", "--store", "s", "--split", "sp", "-o", "n", "--checkpoint", "n"},
      {"-o", "--checkpoint"});
  expect_refused({"train", "--init", "model", "--store", "s", "--split", "sp", "-o", "model"}, {"--init"});
  expect_refused({"eval", "--model", "model", "--store", "s", "--split", "sp", "--predictions", "model"},
                 {"--predictions", "--model"});
  expect_refused(
      {"eval", "--model", "model", "--store", "s", "--split", "sp", "--predictions", "p", "--plot", "p"},
      {"--predictions", "--plot"});
  make_records();
  expect_refused({"dataset", "import", "x=./cpu.jsonl", "--workloads", "w.json", "-o", "cpu.jsonl"},
                 {"FILES"});
  expect_refused({"dataset", "import", "cpu.jsonl", "--workloads", "w.json", "-o", "w.json"},
                 {"--workloads"});
  expect_refused({"dataset", "features", "cpu.jsonl", "--workloads", "w.json", "-o", "cpu.jsonl"}, {"FILE"});
  expect_refused({"dataset", "features", "cpu.jsonl", "--workloads", "w.json", "-o", "w.json"},
                 {"--workloads"});
}

// --- files of others at the place of an output

TEST_F(OutputFiles, ForeignFilesStayUnlessForced) {
  make_store();
  make_database();
  make_records();
  expect_done({"train", "--model", "roofline", "--store", "s", "--split", "sp", "-o", "model", "--quiet"});
  const std::vector<Words> commands = {
      {"db", "export", "a.db", "OUT"},
      {"dataset", "import", "cpu.jsonl", "--workloads", "w.json", "-o", "OUT"},
      {"dataset", "export", "s", "-o", "OUT"},
      {"dataset", "split", "s", "-o", "OUT"},
      {"dataset", "features", "cpu.jsonl", "--workloads", "w.json", "-o", "OUT"},
      {"train", "--model", "roofline", "--store", "s", "--split", "sp", "--quiet", "-o", "OUT"},
      {"eval", "--model", "model", "--store", "s", "--split", "sp", "--predictions", "OUT"},
      {"eval", "--model", "model", "--store", "s", "--split", "sp", "--plot", "OUT"},
      {"zoo", "export", "squeezenet1_1", "--size", "32", "-o", "OUT"}};
  int number = 0;
  for (Words command : commands) {
    const std::string output = "out" + std::to_string(number++);
    for (std::string& word : command) word = word == "OUT" ? output : word;
    // A file of another kind is not an earlier output either.
    for (const std::string& content :
         {std::string(kThesis), read_file(folder_.file("m.onnx")), std::string("{\"type\": \"list\"}\n")}) {
      write_file(folder_.file(output), content);
      expect_refused(command, {output, "--force"});
    }
    Words forced = command;
    forced.push_back("--force");
    expect_done(forced);
    const std::string written = read_file(folder_.file(output));
    EXPECT_THAT(written, Not(HasSubstr("thesis")));
    // Earlier output of the same command is replaced, and so is an empty file.
    expect_done(command);
    write_file(folder_.file(output), "");
    expect_done(command);
    EXPECT_GT(fs::file_size(folder_.file(output)), 0U);
    fs::remove(folder_.path() / output);
    fs::create_directory(folder_.path() / output);
    expect_refused(forced, {output, "not a regular file"});
    for (std::string& word : forced) word = word == output ? "missing/" + output : word;
    expect_refused(forced, {"missing", "folder"});
    // A link still points to the file, and neighbouring files stay.
    write_file(folder_.file("target"), "");
    write_file(folder_.file("target.tmp"), kThesis);
    fs::remove(folder_.path() / output);
    fs::create_symlink("target", folder_.path() / output);
    expect_done(command);
    EXPECT_TRUE(fs::is_symlink(folder_.path() / output));
    EXPECT_GT(fs::file_size(folder_.file("target")), 0U);
    EXPECT_EQ(read_file(folder_.file("target.tmp")), kThesis);
  }
}

TEST_F(OutputFiles, EmptyResultsReplaceNothing) {
  make_store();
  make_database();
  ASSERT_TRUE(record::Database::open(folder_.file("empty.db")).ok());
  expect_refused({"dataset", "import", "empty.db", "-o", "s"}, {"s", "--force"});
  expect_done({"db", "export", "a.db", "records.jsonl"});
  expect_refused({"db", "export", "empty.db", "records.jsonl"}, {"records.jsonl", "--force"});
  expect_done({"dataset", "export", "s", "-o", "all.jsonl"});
  expect_refused({"dataset", "export", "s", "--split", "sp", "--part", "unused", "-o", "all.jsonl"},
                 {"all.jsonl", "--force"});
  expect_done({"dataset", "import", "empty.db", "-o", "new"});
  expect_done({"dataset", "import", "empty.db", "-o", "s", "--force"});
  EXPECT_EQ(nlohmann::json::parse(cli({"dataset", "stats", "s", "--json"}).out)["records"], 0);
}

TEST_F(OutputFiles, CheckpointsOfOthersStay) {
  make_store();
  for (const char* kind : {"roofline", "random", "xgboost"}) {
    write_file(folder_.file("mine"), kThesis);
    cli({"train", "--model", kind, "--store", "s", "--split", "sp", "-o", "new", "--quiet", "--checkpoint",
         "mine"});
    EXPECT_EQ(read_file(folder_.file("mine")), kThesis) << kind;
  }
}

TEST_F(OutputFiles, LogsOfTrialsAreAddedToNotReplaced) {
  make_store();
  const Words search = {
      "search-hyperparameters", "--model", "xgboost",  "--store", "s",   "--split",  "sp", "--tune",
      "eta=0.1..0.2",           "--param", "rounds=3", "--log",   "log", "--trials", "1",  "--quiet"};
  for (const std::string& content : {std::string("one line without a newline"), std::string(kThesis)}) {
    write_file(folder_.file("log"), content);
    expect_refused(search, {"log", "not the log of this search"});
  }
  fs::remove(folder_.path() / "log");
  expect_done(search);
  const std::string log = read_file(folder_.file("log"));
  // The command was killed while writing the first line.
  write_file(folder_.file("log"), log.substr(0, 20));
  expect_done(search);
  EXPECT_EQ(read_file(folder_.file("log")).substr(0, 20), log.substr(0, 20));
}

TEST_F(OutputFiles, TensorsOfOthersStay) {
  expect_done({"compile", "m.onnx", "-o", "out", "--untuned"});
  graph::testing::ModelBuilder other;
  onnx::TensorProto tensor;
  tensor.set_data_type(1);
  tensor.add_dims(2);
  tensor.add_dims(3);
  for (int i = 0; i < 6; ++i) tensor.add_float_data(static_cast<float>(i - 2));
  fs::create_directory(folder_.path() / "set");
  write_file(folder_.file("set/input_0.pb"), tensor.SerializeAsString());
  write_file(folder_.file("set/output_0.pb"), tensor.SerializeAsString());
  const Words run = {"run", "out", "--input", "x=set/input_0.pb", "--format", "pb", "--output"};
  const auto into = [&](const std::string& place, const Words& more = {}) {
    Words words = run;
    words.push_back(place);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_refused(into("set"), {"set/output_0.pb", "--force"});  // the expected output
  expect_refused(into("out"), {"out", "DIRECTORY"});
  expect_refused(into("out/sub"), {"out/sub", "DIRECTORY"});
  expect_refused(into("m.onnx"), {"m.onnx", "not a folder"});
  fs::create_directory(folder_.path() / "given");
  fs::rename(folder_.path() / "set/input_0.pb", folder_.path() / "given/output_0.pb");
  expect_refused(
      {"run", "out", "--input", "x=given/output_0.pb", "--format", "pb", "--output", "given", "--force"},
      {"--input"});
  fs::rename(folder_.path() / "given/output_0.pb", folder_.path() / "set/input_0.pb");
  expect_refused(into("a/b"), {"a/b", "'a' does not exist"});
  expect_done(into("a"));
  expect_done(into("a"));
  expect_done(into("set", {"--force"}));
  EXPECT_EQ(cli({"run", "out", "--check", "set", "--output", "x"}).exit_code, 2);
  EXPECT_EQ(cli({"run", "out", "--reference", "m.onnx", "--output", "x"}).exit_code, 2);
}

}  // namespace
}  // namespace tensorsmith::testing::output_files_test
