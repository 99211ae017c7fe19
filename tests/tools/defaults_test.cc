// Defaults of commands: outputs, time, shapes, settings.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli_support.h"
#include "engine/tune/tune_options.h"
#include "graph/onnx_model_builder.h"
#include "tools/config_file.h"
#include "tools/numbers.h"
#include "tools/output_files.h"
#include "tools/shape_advice.h"

namespace tensorsmith::tools::defaults_test {
namespace {

namespace fs = std::filesystem;
using tensorsmith::testing::CliOptions;
using tensorsmith::testing::CliResult;
using tensorsmith::testing::run_cli;
using tensorsmith::testing::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class Defaults : public ::testing::Test {
 protected:
  Defaults() {
    options_.directory = folder_.path();
    fs::create_directory(folder_.path() / "models");
    write_model("models/m.onnx");
  }
  CliResult cli(const Words& words, const Words& environment = {}) const {
    CliOptions options = options_;
    options.environment = environment;
    return run_cli(words, options);
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(folder_.file(name)).parent_path());
    std::ofstream(folder_.file(name), std::ios::binary) << text;
  }
  void write_model(const std::string& name) const {
    graph::testing::ModelBuilder builder;
    builder.input("x", {8, 8}).output("y").node("Relu", {"x"}, {"y"});
    write(name, builder.bytes());
  }
  // Two inputs whose first dimension is the batch; "image" also has two unnamed dimensions.
  void write_open_model(const std::string& name) const {
    graph::testing::ModelBuilder builder;
    builder.input("image", {-1, 3, -2, -2}, 1, "batch").input("rows", {-1, 4}, 1, "batch");
    builder.output("y").output("z").node("Relu", {"image"}, {"y"}).node("Relu", {"rows"}, {"z"});
    write(name, builder.bytes());
  }
  bool is_model(const std::string& name) const { return fs::exists(folder_.path() / name / "manifest.json"); }

  TemporaryDirectory folder_;
  CliOptions options_;
};

TEST_F(Defaults, TuneHasAllSettingsOfTheTable) {
  const CliResult help = cli({"tune", "--help"});
  for (const engine::TuneOption& option : engine::tune_options())
    EXPECT_THAT(help.out, HasSubstr("  " + std::string(option.flag))) << option.name;
}

TEST_F(Defaults, CompiledModelsGoBesideTheirModels) {
  write_model("models/n.onnx");
  const CliResult tuned = cli({"tune", "models/m.onnx", "models/n.onnx", "--trials", "2"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_TRUE(is_model("models/m_tuned"));
  EXPECT_TRUE(is_model("models/n_tuned"));
  EXPECT_THAT(tuned.err,
              HasSubstr("the compiled models go to models/m_tuned, models/n_tuned (change with -o)"));
  EXPECT_THAT(tuned.err, Not(HasSubstr("--seconds"))) << "there is a limit";
  const CliResult again = cli({"tune", "models/m.onnx", "--trials", "2", "--quiet"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.err, "");
  const CliResult compiled = cli({"compile", "models/m.onnx"});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_TRUE(is_model("models/m_compiled"));
  EXPECT_THAT(compiled.out, HasSubstr("models/m_compiled: "));
  ASSERT_EQ(cli({"compile", "models/m.onnx", "--emit", "c"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_.path() / "models/m_c/tensorsmith_model.h"));
  ASSERT_EQ(cli({"compile", "zoo:bert_tiny:sequence=4", "--untuned"}).exit_code, 0);
  EXPECT_TRUE(is_model("bert_tiny-sequence=4_compiled"));
  EXPECT_EQ(folder_beside("zoo:resnet18:batch=4", "_tuned"), "resnet18-batch=4_tuned");
  EXPECT_EQ(folder_beside("/a/model.v2.onnx", "_tuned"), "/a/model.v2_tuned");
  EXPECT_EQ(folder_beside("./model", "_tuned"), "model_tuned");
}

TEST_F(Defaults, AFolderOfSomebodyElseStays) {
  write("models/m_tuned/letter.txt", "dear");
  const CliResult result = cli({"tune", "models/m.onnx"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("models/m_tuned"));
  EXPECT_TRUE(fs::exists(folder_.path() / "models/m_tuned/letter.txt"));
}

TEST_F(Defaults, TuningTakesAMinuteUnlessALimitIsGiven) {
  const CliResult none = cli({"tune", "models/m.onnx", "--seconds", "0"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, AllOf(HasSubstr("--seconds 0"), HasSubstr("sets no limit")));
  // A file that is not a database ends the run after it has announced its plan.
  write("letter.db", "dear");
  const CliResult run = cli({"tune", "models/m.onnx", "--db", "letter.db"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("note: tuning for 60 s (change with --seconds); the compiled model goes to "
                                 "models/m_tuned (change with -o)\n"));
  const CliResult limited =
      cli({"tune", "models/m.onnx", "-o", "out", "--until-gain", "1%", "--db", "letter.db"});
  EXPECT_THAT(limited.err, Not(HasSubstr("tuning for")));
}

TEST_F(Defaults, TimesHaveUnits) {
  const auto parsed = [](const std::string& text) {
    CLI::App app;
    double seconds = -1;
    add_seconds(app, "--seconds", seconds, 0, 7200, "Time");
    app.parse("--seconds " + text, false);
    return seconds;
  };
  EXPECT_EQ(parsed("60"), 60);
  EXPECT_EQ(parsed("60s"), 60);
  EXPECT_EQ(parsed("10m"), 600);
  EXPECT_EQ(parsed("1h"), 3600);
  EXPECT_EQ(parsed("1.5h"), 5400);
  EXPECT_EQ(parsed("0"), 0);
  for (const char* wrong :
       {"m", "s", "1d", "1mm", "10 m", "-1s", "1m30s", "infs", "nan", "3h", "1e9", "0x1m"})
    EXPECT_THROW(parsed(std::string("'") + wrong + "'"), CLI::ValidationError) << wrong;
  const CliResult wrong = cli({"bench", "models/m.onnx", "--seconds", "10min"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err,
              HasSubstr("'10min' is not a time; write seconds, or a number with a unit: 60, 60s, 10m"));
  EXPECT_EQ(cli({"bench", "models/m.onnx", "--seconds", "0.05s"}).exit_code, 0);
}

TEST_F(Defaults, BenchSaysWhatItTimed) {
  ASSERT_EQ(cli({"tune", "models/m.onnx", "-o", "fast", "--trials", "2", "--threads", "1"}).exit_code, 0);
  ASSERT_EQ(cli({"compile", "models/m.onnx", "-o", "slow", "--untuned"}).exit_code, 0);
  struct Case {
    Words words;
    std::string model, schedules;
  };
  const std::vector<Case> cases = {{{"models/m.onnx"}, "models/m.onnx", "tuned"},
                                   {{"models/m.onnx", "--untuned"}, "models/m.onnx", "untuned"},
                                   {{"fast"}, "fast", "tuned"},
                                   {{"slow"}, "slow", "untuned"}};
  for (const Case& c : cases) {
    Words words = {"bench", "--seconds", "0.05", "--threads", "1"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    const CliResult text = cli(words);
    EXPECT_THAT(text.out, ::testing::ContainsRegex(c.model + " +" + c.schedules + " +1 ")) << text.err;
    Words profile = words;
    profile.emplace_back("--profile");
    EXPECT_THAT(cli(profile).out, HasSubstr(c.model + ", " + c.schedules + ", 1 thread\n"));
    words.emplace_back("--json");
    const CliResult result = cli(words);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out)[0];
    EXPECT_EQ(json["name"], c.model);
    EXPECT_EQ(json["schedules"], c.schedules);
  }
}

// Returns the words after "for instance: ".
Words pasted(const std::string& error) {
  const std::string mark = "for instance: tensorsmith ";
  const size_t begin = error.find(mark);
  if (begin == std::string::npos) return {};
  std::istringstream in(error.substr(begin + mark.size(), error.find('\n', begin) - begin - mark.size()));
  return {std::istream_iterator<std::string>(in), {}};
}

TEST_F(Defaults, OpenShapesAreAskedForWithACommand) {
  write_open_model("open.onnx");
  const CliResult asked = cli({"tasks", "open.onnx"});
  EXPECT_EQ(asked.exit_code, 1);
  EXPECT_EQ(std::count(asked.err.begin(), asked.err.end(), '\n'), 1) << asked.err;
  EXPECT_THAT(asked.err,
              AllOf(HasSubstr("'image' [batch, 3, ?, ?], 'rows' [batch, 4]"), HasSubstr("--dim batch=1"),
                    HasSubstr("for instance: tensorsmith tasks open.onnx --shape image=1x3x224x224 "
                              "--shape rows=1x4\n")));
  const CliResult done = cli(pasted(asked.err));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  // One shape is given; the batch of the other input follows from it.
  const CliResult half = cli({"compile", "open.onnx", "--untuned", "--shape", "image=2x3x8x8"});
  EXPECT_EQ(half.exit_code, 0) << "the batch of the other is known by its name: " << half.err;
  EXPECT_THAT(cli({"tasks", "open.onnx", "--shape", "row=1x4"}).err,
              AllOf(HasSubstr("no input of this name (did you mean 'rows'?)"), HasSubstr("'image', 'rows'")));
  for (const char* command : {"tasks", "predict", "bench"}) {
    Words words = {command, "open.onnx", "--dim", "batch=2", "--shape", "image=2x3x8x8"};
    if (command == std::string("bench")) words.insert(words.end(), {"--seconds", "0.05"});
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 0) << command << ": " << result.err;
  }
  ASSERT_EQ(
      cli({"compile", "open.onnx", "-o", "out", "--untuned", "--dim", "batch=2", "--shape", "image=2x3x8x8"})
          .exit_code,
      0);
  EXPECT_EQ(cli({"run", "out", "--reference", "open.onnx", "--dim", "batch=2", "--shape", "image=2x3x8x8"})
                .exit_code,
            0);
  for (const char* wrong :
       {"batch", "batch=", "=2", "batch=0", "batch=-1", "batch=two", "batch=99999999999999999999"}) {
    const CliResult result = cli({"tasks", "open.onnx", "--dim", wrong});
    EXPECT_EQ(result.exit_code, 1) << wrong;
    EXPECT_THAT(result.err, HasSubstr("write it as NAME=8"));
  }
  EXPECT_THAT(cli({"tasks", "open.onnx", "--dim", "batch=2", "--dim", "batch=3"}).err,
              HasSubstr("given twice"));
  EXPECT_THAT(cli({"tasks", "open.onnx", "--dim", "batsh=2"}).err, HasSubstr("did you mean 'batch'?"));
  EXPECT_THAT(cli({"bench", "out", "--dim", "batch=2"}).err, HasSubstr("--dim batch=2"));
  EXPECT_EQ(cli({"run", "out", "--dim", "batch=2"}).exit_code, 2);
  EXPECT_THAT(cli({"tasks", "zoo:bert_tiny", "--dim", "batch=2"}).err, HasSubstr("zoo:resnet50:batch=4"));
}

TEST(ShapeAdvice, NamesDimensionsWhereInputsAreMany) {
  using graph::OpenInput;
  std::vector<OpenInput> inputs;
  for (int i = 0; i < 5; ++i)
    inputs.push_back({"past." + std::to_string(i),
                      std::vector<graph::DeclaredDimension>{{-1, "batch"}, {12, ""}, {-1, "past sequence"}},
                      false});
  EXPECT_EQ(shape_advice(inputs, "tensorsmith tune m.onnx"),
            "choose the lengths of these dimensions, for instance: tensorsmith tune m.onnx --dim batch=1 "
            "--dim 'past sequence=128'");
  inputs[0].shape->at(1) = {-1, ""};  // has no name
  EXPECT_THAT(shape_advice(inputs, "tensorsmith tune m.onnx"),
              AllOf(HasSubstr("tensorsmith tune m.onnx --shape past.0=1x128x128 --shape past.1=1x12x128"),
                    HasSubstr("by name (--dim batch=1 --dim 'past sequence=128') or by input")));
  const std::vector<OpenInput> sequence = {{"s", std::nullopt, true}};
  EXPECT_EQ(shape_advice(sequence, "tensorsmith tune m.onnx"),
            "choose the lengths of these dimensions (--absent s if 's' is empty), for instance: tensorsmith "
            "tune m.onnx --shape "
            "'s[0]=2x3'");
}

TEST(ConfigFile, IsToml) {
  const auto entries = parse_config(
      "# ours\n\ndevice = \"local:isa=avx2#\" # a comment\n threads=8\r\ndatabase = 'C:\\x'", "f");
  ASSERT_TRUE(entries.ok()) << entries.error().message();
  ASSERT_EQ(entries->size(), 3);
  EXPECT_EQ((*entries)[0].value, "local:isa=avx2#");
  EXPECT_EQ((*entries)[1].value, "8");
  EXPECT_EQ((*entries)[2].value, "C:\\x");
  EXPECT_EQ((*entries)[2].line, 5);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"devise = \"local\"",
       "f:1: unknown key 'devise' (did you mean 'device'?); the keys are device, threads, database"},
      {"\n[tune]", "f:2: unknown key 'tune'"},
      {"device", "f:1: not TOML"},
      {"device = local", "with quotes around a text"},
      {"\ndevice = \"local", "f:2: not TOML"},
      {"device = \"a\" b", "f:1: not TOML"},
      {"device = 3", "f:1: device takes a text in quotes"},
      {"threads = \"3\"", "f:1: threads takes a whole number"},
      {"threads = 3.5", "f:1: threads takes a whole number"},
      {"threads =", "f:1: not TOML"},
      {"threads = 1\nthreads = 2", "f:2: not TOML"}};
  for (const auto& [text, reason] : wrong) {
    const auto result = parse_config(text, "f");
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_THAT(result.error().message(), HasSubstr(reason));
  }
}

TEST_F(Defaults, SettingsComeFromAFile) {
  const auto threads = [&](const Words& more, const Words& environment = {}) {
    Words words = {"bench", "models/m.onnx", "--seconds", "0.02", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const CliResult result = cli(words, environment);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? nlohmann::json::parse(result.out)[0]["threads"].get<int>() : -1;
  };
  const std::string home = "XDG_CONFIG_HOME=" + folder_.file("home");
  write("home/tensorsmith/tensorsmith.toml", "threads = 3\n");
  EXPECT_EQ(threads({}, {home}), 3);
  EXPECT_EQ(threads({}, {"XDG_CONFIG_HOME=", "HOME=" + folder_.file("nowhere")}),
            threads({"--config", "none"}));
  write("tensorsmith.toml", "threads = 1\ndatabase = \"mine.db\"\n");
  EXPECT_EQ(threads({}, {home}), 1) << "the current folder's comes first";
  EXPECT_EQ(threads({"--threads", "2"}), 2) << "the command line wins";
  write("other.toml", "threads = 4\n");
  EXPECT_EQ(threads({"--config", "other.toml"}), 4);
  // The threads in a file apply only to its device.
  EXPECT_EQ(threads({"--device", "local"}), threads({"--config", "none"}));

  const CliResult tuned = cli({"tune", "models/m.onnx", "--trials", "2"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, HasSubstr("note: tensorsmith.toml says: threads 1, database mine.db\n"));
  EXPECT_TRUE(fs::exists(folder_.path() / "mine.db"));
  EXPECT_FALSE(fs::exists(folder_.path() / "tensorsmith.db"));
  // For compiled models, options about compiling are refused on the command line, but not in a
  // settings file.
  write("device.toml", "device = \"local:isa=avx2\"\nthreads = 1\ndatabase = \"mine.db\"\n");
  const CliResult compiled = cli({"bench", "models/m_tuned", "--seconds", "0.02", "--config", "device.toml"});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_EQ(cli({"tune", "models/m.onnx", "--trials", "1", "--quiet"}).err, "");

  write("tensorsmith.toml", "\nthread = 1\n");
  const CliResult unknown = cli({"tune", "models/m.onnx", "--trials", "2"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_EQ(unknown.err,
            "tensorsmith: error: tensorsmith.toml:2: unknown key 'thread' (did you mean 'threads'?); the "
            "keys are device, "
            "threads, database\n");
  EXPECT_EQ(cli({"tune", "--help"}).exit_code, 0);
  EXPECT_EQ(cli({"zoo", "list"}).exit_code, 0) << "a command without such options reads no settings";
  write("tensorsmith.toml", "threads = 99999\n");
  EXPECT_THAT(cli({"bench", "models/m.onnx"}).err,
              HasSubstr("tensorsmith.toml:1: --threads: '99999' is not a whole number from 0 to 1024"));
  const CliResult missing = cli({"bench", "models/m.onnx", "--config", "missing.toml"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("missing.toml"));
}

}  // namespace
}  // namespace tensorsmith::tools::defaults_test
