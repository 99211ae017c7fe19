// Output to the standard streams, and behaviour when they are full, closed or a terminal.
#include "tools/console.h"

#include <gmock/gmock.h>

#include <fstream>

#include "cli_support.h"
#include "graph/onnx_model_builder.h"
#include "tools/report.h"

namespace tensorsmith::tools::console_test {
namespace {

namespace fs = std::filesystem;
using tensorsmith::testing::CliOptions;
using tensorsmith::testing::CliResult;
using tensorsmith::testing::run_cli;
using tensorsmith::testing::Stream;
using tensorsmith::testing::TemporaryDirectory;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

TEST(Printable, ShowsControlsAndForeignBytes) {
  EXPECT_EQ(printable("conv2d 1x64, \xc3\xa9\xe4\xb8\xad\xf0\x9f\x99\x82"),
            "conv2d 1x64, \xc3\xa9\xe4\xb8\xad\xf0\x9f\x99\x82");
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\nb\tc\rd\x7f"), "a\\nb\\tc\\rd\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");                                                    // CSI as one character
  EXPECT_EQ(printable("\xe2\x80\xae\xe2\x81\xa6"), "\\u202e\\u2066");         // direction of text
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");                             // never valid; cut off
  EXPECT_EQ(printable("\xc0\x9b\xe0\x82\x9b"), "\\xc0\\x9b\\xe0\\x82\\x9b");  // longer than needed
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");                    // a surrogate
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable_lines("a\nb\x1b\n"), "a\nb\\x1b\n");
}

TEST(Printable, TablesStayTables) {
  Table table({"task", "time"});
  table.add({"a\nfake 1 us\x1b[2J", "1 us"});
  EXPECT_EQ(table.text(),
            "task                 time\n"
            "a\\nfake 1 us\\x1b[2J  1 us\n");
}

TEST(JsonText, IsJsonWhateverTheNames) {
  const nlohmann::json json = {{"a\xff", "\x1b\xc2\x9b\x7f\xc3\xa9"}, {"b", {"\xe4\xb8"}}};
  const std::string text = json_text(json);
  const auto parsed = nlohmann::json::parse(text);
  EXPECT_EQ(parsed["a\xef\xbf\xbd"], "\x1b\xc2\x9b\x7f\xc3\xa9");
  for (const char* bytes : {"\x1b", "\xc2\x9b", "\x7f"}) EXPECT_THAT(text, Not(HasSubstr(bytes)));
  EXPECT_THAT(text, HasSubstr("\xc3\xa9"));
}

class Console : public ::testing::Test {
 protected:
  Console() { options_.directory = folder_.path(); }
  CliResult cli(const Words& words, Stream out = Stream::kCaptured, Stream err = Stream::kCaptured) const {
    CliOptions options = options_;
    options.out = out;
    options.err = err;
    return run_cli(words, options);
  }
  void write_model(const std::string& name, const std::string& op = "Relu") const {
    graph::testing::ModelBuilder builder;
    builder.input(name, {2, 3}).output("y" + name).node(op, {name}, {"y" + name});
    builder.proto().mutable_graph()->mutable_node(0)->set_name("node" + name);
    builder.proto().mutable_graph()->set_name("graph" + name);
    std::ofstream(folder_.file("m.onnx"), std::ios::binary) << builder.bytes();
  }
  // Expects no byte that a terminal would act on, except for line ends.
  static void expect_harmless(const CliResult& result) {
    for (const std::string& text : {result.out, result.err}) {
      for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c != 0x7f)) << text;
    }
    EXPECT_THAT(result.err, Not(HasSubstr("bug")));
  }

  TemporaryDirectory folder_;
  CliOptions options_;
};

TEST_F(Console, NamesCannotSendEscapeCodes) {
  const std::string evil =
      "\x1b]0;title\x07\x1b[2J\xc2\x9b"
      "31m\rx\nfake";
  write_model(evil);
  for (const Words& words : std::vector<Words>{{"tasks", "m.onnx"},
                                               {"tasks", "m.onnx", "--text"},
                                               {"tasks", "m.onnx", "--json"},
                                               {"tasks", "m.onnx", "m.onnx"},
                                               {"predict", "m.onnx", "--model", "none"},
                                               {"predict", "m.onnx", "--model", "none", "--json"},
                                               {"compile", "m.onnx", "-o", "out", "--untuned"},
                                               {"run", "out", "--reference", "m.onnx"},
                                               {"run", "out", "--reference", "m.onnx", "--json"},
                                               {"bench", "out", "--seconds", "0.05", "--profile"},
                                               {"tune", "m.onnx", "-o", "out", "--trials", "2"}}) {
    SCOPED_TRACE(::testing::PrintToString(words));
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_harmless(result);
  }
  for (const Words& words : std::vector<Words>{{"run", "out"}, {"run", "out", "--input", evil + "y=x.pb"}}) {
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("\\x1b]0;title"));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    expect_harmless(result);
  }
  write_model(evil, "NoSuchOperator");
  const CliResult unsupported = cli({"tasks", "m.onnx"});
  EXPECT_EQ(unsupported.exit_code, 1);
  EXPECT_EQ(std::count(unsupported.err.begin(), unsupported.err.end(), '\n'), 1) << unsupported.err;
  expect_harmless(unsupported);
  // File names, too.
  expect_harmless(cli({"tasks", "no\x1b[2Jfile.onnx"}));
}

TEST_F(Console, NamesThatAreNotUtf8AreStillJson) {
  write_model("na\xff\xfeme");
  EXPECT_EQ(cli({"compile", "m.onnx", "-o", "out", "--untuned"}).exit_code, 0);
  fs::copy(folder_.path() / "m.onnx", folder_.path() / "m\xff.onnx");
  for (const Words& words :
       std::vector<Words>{{"tasks", "m.onnx", "--json"},
                          {"tasks", "m.onnx", "--json", "--text"},
                          {"tasks", "m.onnx", "m\xff.onnx", "--json"},
                          {"predict", "m.onnx", "--model", "none", "--json"},
                          {"run", "out", "--reference", "m.onnx", "--json"},
                          {"bench", "out", "--seconds", "0.05", "--json"},
                          {"bench", "out", "--profile", "--json"},
                          {"tune", "m\xff.onnx", "-o", "o\xff", "--trials", "2", "--json"}}) {
    SCOPED_TRACE(::testing::PrintToString(words));
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_FALSE(nlohmann::json::parse(result.out, nullptr, false).is_discarded()) << result.out;
  }
}

TEST_F(Console, ResultsThatAreLostAreAFailure) {
  write_model("x");
  for (const Words& words : std::vector<Words>{{"tasks", "m.onnx"},
                                               {"tasks", "m.onnx", "--json"},
                                               {"zoo", "list"},
                                               {"--help"},
                                               {"tune", "--help"},
                                               {"--version"},
                                               {"devices", "show", "v100"}}) {
    SCOPED_TRACE(::testing::PrintToString(words));
    for (const Stream stream : {Stream::kFull, Stream::kClosed}) {
      const CliResult lost = cli(words, stream);
      EXPECT_EQ(lost.exit_code, 1);
      EXPECT_THAT(lost.err, HasSubstr("tensorsmith: error: cannot write to standard output: "));
      EXPECT_EQ(std::count(lost.err.begin(), lost.err.end(), '\n'), 1) << lost.err;
    }
    // `| head`: there is no message, and the exit code is that of SIGPIPE.
    const CliResult gone = cli(words, Stream::kNoReader);
    EXPECT_EQ(gone.exit_code, 141);
    EXPECT_EQ(gone.err, "");
  }
  // The exit code reports the lost output, but the compiled model is complete.
  EXPECT_EQ(cli({"compile", "m.onnx", "-o", "out", "--untuned"}, Stream::kFull).exit_code, 1);
  EXPECT_EQ(cli({"run", "out", "--reference", "m.onnx"}).exit_code, 0);
}

TEST_F(Console, ProgressThatIsLostIsNot) {
  write_model("x");
  for (const Stream stream : {Stream::kFull, Stream::kClosed, Stream::kNoReader}) {
    const std::string database = "db" + std::to_string(static_cast<int>(stream));
    const CliResult tuned =
        cli({"tune", "m.onnx", "-o", "out", "--trials", "3", "--skip-end-to-end", "--db", database},
            Stream::kCaptured, stream);
    EXPECT_EQ(tuned.exit_code, 0);
    EXPECT_THAT(tuned.out, HasSubstr("compiled model: out"));
    EXPECT_EQ(cli({"db", "check", database}).exit_code, 0);
    EXPECT_EQ(cli({"tasks", "missing.onnx"}, Stream::kCaptured, stream).exit_code, 1);
    EXPECT_EQ(cli({"nonsense"}, Stream::kCaptured, stream).exit_code, 2);
  }
  EXPECT_EQ(cli({"tasks", "m.onnx"}, Stream::kClosed, Stream::kClosed).exit_code, 1);
}

// With standard error closed, the next file to be opened would get its descriptor, and progress
// would be written into that file.
TEST_F(Console, ClosedStreamsAreNoFiles) {
  for (const Stream out : {Stream::kCaptured, Stream::kClosed}) {
    cli({"zoo", "export", "bert_tiny", "--sequence", "4", "-o", "n.onnx"}, out, Stream::kClosed);
    EXPECT_EQ(cli({"tasks", "n.onnx"}).exit_code, 0);
    fs::remove(folder_.path() / "n.onnx");
  }
}

TEST_F(Console, HelpIsForWhatThereIs) {
  for (const Words& words : std::vector<Words>{{"nonsense", "--help"},
                                               {"--help", "nonsense"},
                                               {"db", "nonsense", "--help"},
                                               {"tune", "--nonsense", "--help"}}) {
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 2) << ::testing::PrintToString(words);
    EXPECT_THAT(result.err, HasSubstr("nonsense"));
    EXPECT_EQ(result.out, "");
  }
  for (const Words& words : std::vector<Words>{{"--help"}, {"tune", "--help"}, {"db", "export", "--help"}})
    EXPECT_EQ(cli(words).exit_code, 0) << ::testing::PrintToString(words);
}

TEST_F(Console, UnknownWordsAreNamed) {
  const std::vector<std::pair<Words, std::string>> lines = {
      {{"frobnicate"}, "unknown command 'frobnicate'; `tensorsmith --help` lists the commands"},
      {{"frobnicate", "tune", "m.onnx"},
       "unknown command 'frobnicate'; `tensorsmith --help` lists the commands"},
      {{"tun", "m.onnx"}, "unknown command 'tun'; did you mean `tune`?"},
      {{"bnech", "out"}, "unknown command 'bnech'; did you mean `bench`?"},
      {{"zoo", "lst"}, "unknown command 'zoo lst'; did you mean `zoo list`?"},
      {{"db", "help"}, "unknown command 'db help'; did you mean `--help`?"},
      {{"version"}, "unknown command 'version'; did you mean `--version`?"},
      {{"help", "tun"}, "unknown command 'tun'; did you mean `tune`?"},
      {{"help", "db", "exprot"}, "unknown command 'db exprot'; did you mean `db export`?"},
      {{"-v"}, "unknown option '-v'; did you mean `--version`?"},
      {{"-x"}, "unknown option '-x'; `tensorsmith --help` lists the options"},
      {{"--verison"}, "unknown option '--verison'; did you mean `--version`?"},
      {{"tune", "--xyzzy"}, "unknown option '--xyzzy'; `tensorsmith tune --help` lists the options"},
      {{"tune", "m.onnx", "-o", "out", "--second", "3"},
       "unknown option '--second'; did you mean `--seconds`?"},
      {{"tune", "m.onnx", "-o", "out", "--tirals=3"}, "unknown option '--tirals'; did you mean `--trials`?"},
      {{"db", "info", "a.db", "b.db"},
       "unexpected argument 'b.db'; `tensorsmith db info --help` lists the arguments"}};
  for (const auto& [words, text] : lines) {
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 2) << ::testing::PrintToString(words);
    EXPECT_EQ(result.err, "tensorsmith: error: " + text + "\n") << ::testing::PrintToString(words);
    EXPECT_EQ(result.out, "");
  }
  for (const Words& words : std::vector<Words>{{}, {"run"}, {"db"}})
    EXPECT_THAT(cli(words).err, Not(HasSubstr("unknown"))) << ::testing::PrintToString(words);
}

// The program's help begins with the commands that most users need; the laboratory's have headings of
// their own after them.
TEST_F(Console, HelpGroupsTheCommands) {
  std::istringstream help(cli({"--help"}).out);
  std::vector<std::pair<std::string, Words>> groups;
  for (std::string line; std::getline(help, line) && line != "Options:";) {
    if (line.ends_with(':') && !line.starts_with(' ')) groups.push_back({line, {}});
    if (groups.empty() || !line.starts_with("  ") || line[2] == ' ') continue;
    groups.back().second.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  ASSERT_GE(groups.size(), 4u);
  EXPECT_EQ(groups[0].first, "Commands:");
  EXPECT_EQ(groups[0].second,
            (Words{"tune", "bench", "run", "compile", "predict", "report", "tasks", "zoo", "devices", "db"}));
  EXPECT_EQ(groups[1].second, (Words{"transfer", "worker"}));
  for (size_t g = 2; g + 1 < groups.size(); ++g)
    EXPECT_TRUE(groups[g].first.starts_with("Laboratory: ")) << groups[g].first;
  EXPECT_EQ(groups.back().first, "Help:");
}

TEST_F(Console, HelpIsACommandToo) {
  EXPECT_EQ(cli({"help"}).out, cli({"--help"}).out);
  EXPECT_EQ(cli({"help", "tune"}).out, cli({"tune", "--help"}).out);
  EXPECT_EQ(cli({"help", "db", "export"}).out, cli({"db", "export", "--help"}).out);
  EXPECT_EQ(cli({"help", "db"}).out, cli({"db", "--help"}).out);
  EXPECT_THAT(cli({"help", "help"}).out, HasSubstr("tensorsmith help [OPTIONS] [command...]"));
  const CliResult version = cli({"-V"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, HasSubstr("tensorsmith "));
  EXPECT_EQ(version.out, cli({"--version"}).out);
}

// The examples of a command are for this command and use only its own options.
TEST_F(Console, ExamplesAreOfTheCommand) {
  for (const Words& words : std::vector<Words>{{"tasks"},
                                               {"tune"},
                                               {"compile"},
                                               {"run"},
                                               {"bench"},
                                               {"db", "info"},
                                               {"db", "check"},
                                               {"db", "export"},
                                               {"db", "import"},
                                               {"train"},
                                               {"eval"},
                                               {"calibrate"},
                                               {"predict"},
                                               {"zoo", "list"},
                                               {"zoo", "export"},
                                               {"search-hyperparameters"},
                                               {"compare"},
                                               {"transfer"},
                                               {"devices", "list"},
                                               {"devices", "show"},
                                               {"dataset", "collect"},
                                               {"dataset", "import"},
                                               {"dataset", "stats"},
                                               {"dataset", "split"},
                                               {"dataset", "export"},
                                               {"dataset", "features"}}) {
    Words asked = words;
    asked.emplace_back("--help");
    const std::string help = cli(asked).out;
    std::string name = "  tensorsmith";
    for (const std::string& word : words) name += " " + word;
    const size_t begin = help.find("Examples:\n");
    ASSERT_NE(begin, std::string::npos) << help;
    const std::string options = help.substr(0, begin);
    std::istringstream examples(help.substr(begin));
    int count = 0;
    std::string line;
    std::getline(examples, line);
    while (std::getline(examples, line) && !line.empty()) {
      const bool goes_on = line.starts_with("    --");
      EXPECT_TRUE(goes_on || line.starts_with(name)) << line;
      count += goes_on ? 0 : 1;
      std::istringstream parts(line.substr(0, line.find('#')));
      for (std::string word; parts >> word;) {
        if (!word.starts_with("-")) continue;
        EXPECT_THAT(options, HasSubstr(word)) << line;
      }
    }
    EXPECT_GT(count, 0) << help;
  }
}

TEST_F(Console, DevicesSayWhatTheyAreFor) {
  const CliResult list = cli({"devices", "list"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  const size_t local = list.out.find("\nlocal "), cpu = list.out.find("\nxeon-8592plus "),
               gpu = list.out.find("\na10 ");
  EXPECT_LT(local, cpu);
  EXPECT_LT(cpu, gpu) << "CPUs come before GPUs";
  EXPECT_THAT(list.out.substr(local, 60), HasSubstr("tune, compile, run, predict"));
  EXPECT_THAT(list.out.substr(cpu, 60), HasSubstr("compile, predict"));
  EXPECT_THAT(list.out.substr(gpu, 60), HasSubstr("train, eval"));
}

TEST_F(Console, OptionsOfCompilingAreRefusedForCompiledModels) {
  write_model("x");
  ASSERT_EQ(cli({"compile", "m.onnx", "-o", "out", "--untuned"}).exit_code, 0);
  for (const Words& option : std::vector<Words>{
           {"--untuned"}, {"--no-winograd"}, {"--db", "x.db"}, {"--shape", "x=2x3"}, {"--device", "local"}}) {
    Words words = {"bench", "out", "--seconds", "0.05"};
    words.insert(words.end(), option.begin(), option.end());
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_THAT(result.err, AllOf(HasSubstr(option[0]), HasSubstr("tensorsmith bench MODEL")));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST_F(Console, CompilesWithoutADatabase) {
  write_model("x");
  const CliResult compiled = cli({"compile", "m.onnx", "-o", "out"});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_THAT(compiled.err,
              HasSubstr("note: there is no tensorsmith.db here, so the model gets untuned schedules"));
  EXPECT_EQ(cli({"compile", "m.onnx", "-o", "out", "--untuned"}).err, "");
  // A database that the user names must exist.
  const CliResult asked = cli({"compile", "m.onnx", "-o", "other", "--db", "tensorsmith.db"});
  EXPECT_EQ(asked.exit_code, 1);
  EXPECT_FALSE(fs::exists(folder_.path() / "other"));
}

TEST_F(Console, RunsOnArraysOfNumpy) {
  write_model("x");
  ASSERT_EQ(cli({"compile", "m.onnx", "-o", "out", "--untuned"}).exit_code, 0);
  const std::string numpy = std::string(TENSORSMITH_SOURCE_DIR) + "/tests/data/numpy/";
  for (const std::string name : {"rows.npy", "columns.npy", "two.npz"}) {
    const CliResult result = cli({"run", "out", "--input", "x=" + numpy + name});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("'yx' f32 2x3: 0 0 0 0.5 1 1.5"));
  }
  const CliResult other = cli({"run", "out", "--input", "x=" + numpy + "columns3.npy"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("2x3"));
}

// Outputs of a quantized model may differ by one step in a few elements; those of other models may
// not.
TEST_F(Console, ChecksOfQuantizedModelsAllowOneStep) {
  fs::create_directory(folder_.path() / "data");
  lower::Tensor input = lower::Tensor::zeros(ir::DType::kF32, {40});
  for (int64_t i = 0; i < 40; ++i)
    input.set(i, ir::scalar_float(ir::DType::kF32, 0.25 * static_cast<double>(i)));
  ASSERT_TRUE(graph::write_tensor_proto(folder_.file("data/input_0.pb"), "x", input).ok());
  const auto check = [&](bool quantized, double difference) {
    graph::testing::ModelBuilder builder;
    builder.input("x", {40}).output("y").initializer("scale", {}, {0.25F});
    if (quantized) {
      builder.raw("zero", {}, 2, std::string(1, '\0')).node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
      builder.node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
    } else {
      builder.node("Abs", {"x"}, {"y"});
    }
    std::ofstream(folder_.file("m.onnx"), std::ios::binary) << builder.bytes();
    lower::Tensor expected = input;
    expected.set(7, ir::scalar_float(ir::DType::kF32, input.at(7).f + difference));
    EXPECT_TRUE(graph::write_tensor_proto(folder_.file("data/output_0.pb"), "y", expected).ok());
    EXPECT_EQ(cli({"compile", "m.onnx", "-o", "out", "--untuned"}).exit_code, 0);
    return cli({"run", "out", "--check", "data"});
  };
  EXPECT_EQ(check(false, 0).exit_code, 0);
  EXPECT_EQ(check(false, 0.25).exit_code, 1);
  EXPECT_EQ(check(true, 0.5).exit_code, 1);
  const CliResult one = check(true, 0.25);
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("40 of 40 elements agree"));
  EXPECT_THAT(one.out, HasSubstr("(1 of them are one quantization step off)"));
}

TEST_F(Console, SaysWhatItIsMadeOf) {
  const CliResult version = cli({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out,
              ::testing::MatchesRegex("tensorsmith [0-9]+\\.[0-9]+\\.[0-9]+.*, LLVM 19\\.1\\.[0-9]+\n"));
}

TEST_F(Console, ATemporaryFolderThatIsMissingIsAnError) {
  write_model("x");
  options_.environment = {"TMPDIR=" + folder_.file("missing")};
  for (const Words& words : std::vector<Words>{{"bench", "m.onnx", "--untuned", "--seconds", "0.05"}}) {
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("TMPDIR=" + folder_.file("missing")));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  // Other commands need no temporary folder.
  EXPECT_EQ(cli({"compile", "m.onnx", "-o", "out", "--untuned"}).exit_code, 0);
  EXPECT_EQ(cli({"bench", "out", "--seconds", "0.05"}).exit_code, 0);
  EXPECT_EQ(cli({"tune", "m.onnx", "-o", "out", "--trials", "2", "--skip-end-to-end"}).exit_code, 0);
  EXPECT_EQ(cli({"zoo", "export", "bert_tiny", "--sequence", "4", "-o", "n.onnx"}).exit_code, 0);
}

// All number options are added by tools/numbers.h: no help text shows CLI11's own types.
TEST_F(Console, NoNumberIsReadByAnybodyElse) {
  const std::vector<Words> commands = {{"tasks"},
                                       {"tune"},
                                       {"compile"},
                                       {"run"},
                                       {"bench"},
                                       {"db", "info"},
                                       {"db", "check"},
                                       {"db", "export"},
                                       {"db", "import"},
                                       {"dataset", "collect"},
                                       {"dataset", "import"},
                                       {"dataset", "stats"},
                                       {"dataset", "split"},
                                       {"dataset", "export"},
                                       {"dataset", "features"},
                                       {"train"},
                                       {"eval"},
                                       {"search-hyperparameters"},
                                       {"compare"},
                                       {"lm", "corpus"},
                                       {"lm", "pretrain"},
                                       {"lm", "finetune"},
                                       {"lm", "generate"},
                                       {"lm", "measure"},
                                       {"lm", "rank"},
                                       {"lm", "loop"},
                                       {"lm", "eval"},
                                       {"transfer"},
                                       {"devices", "list"},
                                       {"devices", "show"},
                                       {"predict"},
                                       {"zoo", "list"},
                                       {"zoo", "export"}};
  for (Words words : commands) {
    words.emplace_back("--help");
    const CliResult help = cli(words);
    EXPECT_EQ(help.exit_code, 0);
    for (const char* type : {" INT", " UINT", " FLOAT", " DOUBLE"})
      EXPECT_THAT(help.out, Not(HasSubstr(type))) << words[0];
  }
}

// In the same way, all output goes through tools/console.h.
TEST(ConsoleSources, NothingElsePrints) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(TENSORSMITH_SOURCE_DIR) / "src/tools")) {
    if (!entry.is_regular_file() || entry.path().stem() == "console" ||
        entry.path().filename() == "CMakeLists.txt")
      continue;
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (const char* way : {"fmt::print(", "printf(", "std::cout", "std::cerr", "std::puts", ".dump("})
      EXPECT_EQ(text.find(way), std::string::npos)
          << entry.path() << " uses " << way << ", not tools/console.h";
    ++files;
  }
  EXPECT_GT(files, 40);
}

// Checks every option that takes a number, for every command.
TEST_F(Console, NumbersAreNumbersAndInRange) {
  struct Case {
    Words command;
    Words whole, real;
  };
  const std::vector<Case> cases = {
      {{"tune", "m.onnx", "-o", "out"}, {"--trials", "--batch", "--seed", "--threads"}, {"--seconds"}},
      {{"compile", "m.onnx", "-o", "out"}, {"--threads"}, {}},
      {{"run", "out"}, {"--threads", "--seed"}, {"--rtol", "--atol"}},
      {{"bench", "out"}, {"--threads", "--runs", "--seed"}, {"--seconds"}},
      {{"predict", "m.onnx"}, {"--threads"}, {}},
      {{"compare", "m.onnx"},
       {"--trials", "--seeds", "--batch", "--heaviest", "--threads", "--again"},
       {"--epsilon"}},
      {{"lm", "pretrain", "a.corpus", "-o", "out"},
       {"--width", "--heads", "--layers", "--seed", "--threads"},
       {"--epochs", "--learning-rate"}},
      {{"lm", "finetune", "a.lm", "a.corpus", "-o", "out"},
       {"--seed", "--threads"},
       {"--within", "--preference", "--epochs", "--learning-rate"}},
      {{"lm", "eval", "m.onnx"}, {"--counts", "--reference-trials", "--seeds", "--heaviest"}, {}},
      {{"db", "export", "a.db", "out"}, {"--fastest"}, {}},
      {{"lm", "measure", "a.jsonl", "--db", "a.db"}, {"--count", "--threads"}, {}},
      {{"dataset", "collect", "--networks", "m.onnx", "-o", "a.db"},
       {"--records", "--per-task", "--batch", "--seed"},
       {"--seconds", "--slowest"}},
      {{"dataset", "import", "a.db", "-o", "out"}, {"--threads"}, {}},
      {{"dataset", "features", "f", "--workloads", "w", "-o", "out"}, {"--threads"}, {}},
      {{"dataset", "split", "s", "-o", "out"},
       {"--profile-tasks", "--seed", "--min-records"},
       {"--validation", "--test"}},
      {{"train", "--model", "xgboost", "--store", "s", "--split", "sp", "-o", "out"},
       {"--max-tasks", "--max-records", "--seed", "--threads"},
       {}},
      {{"eval", "--model", "m", "--store", "s", "--split", "sp", "--rounds", "2"},
       {"--threads", "--batch", "--seeds"},
       {}},
      {{"eval", "--model", "m", "--store", "s", "--split", "sp"}, {"--rounds"}, {}},
      {{"search-hyperparameters", "--model", "xgboost", "--store", "s", "--split", "sp", "--tune", "eta=0..1",
        "--log", "out"},
       {"--trials", "--seed", "--threads"},
       {}},
      {{"zoo", "export", "resnet18", "-o", "out"}, {"--batch", "--size", "--sequence", "--seed"}, {}}};
  const Words everywhere = {"99999999999999999999", "-1", "nan", "1x", "0x10"};
  const Words once = {"inf", "-inf", "1e999", "", " 1", "+1", "one", "--"};
  for (const Case& c : cases) {
    const auto refused = [&](const std::string& option, const std::string& value) {
      Words words = c.command;
      words.push_back(option + "=" + value);
      const CliResult result = cli(words);
      EXPECT_EQ(result.exit_code, 2) << c.command[0] << " " << option << "=" << value << result.err;
      EXPECT_THAT(result.err, HasSubstr(option));
    };
    for (const std::string& option : c.whole) {
      for (const std::string& value : everywhere) refused(option, value);
      refused(option, "1.5");
    }
    for (const std::string& option : c.real) {
      for (const std::string& value : everywhere) refused(option, value);
    }
    if (c.command[0] != "tune") continue;
    for (const std::string& value : once) {
      refused("--trials", value);
      refused("--seconds", value);
    }
    refused("--trials", "1e3");
  }
  EXPECT_FALSE(fs::exists(folder_.path() / "out"));
  write_model("x");
  EXPECT_EQ(cli({"compile", "m.onnx", "-o", "out", "--untuned"}).exit_code, 0);
  EXPECT_EQ(cli({"bench", "out", "--seed", "18446744073709551615", "--seconds", "0.02"}).exit_code, 0);
  // Decimal, not octal.
  const CliResult ten = cli({"bench", "out", "--runs", "010", "--seconds", "0", "--json"});
  ASSERT_EQ(ten.exit_code, 0) << ten.err;
  EXPECT_EQ(nlohmann::json::parse(ten.out)[0]["runs"], 10);
}

TEST_F(Console, ShapesReplaceDeclaredOnes) {
  graph::testing::ModelBuilder builder;
  builder.input("x", {-1, 3}).output("y").initializer("w", {3}, {1, 2, 3}).node("Add", {"x", "w"}, {"y"});
  builder.input("w", {3});
  std::ofstream(folder_.file("m.onnx"), std::ios::binary) << builder.bytes();
  EXPECT_EQ(cli({"tasks", "m.onnx", "--shape", "x=2x3"}).exit_code, 0);
  for (const char* shape : {"x=2x4", "x=2", "x=2x3x1", "w=3", "w=4", "z=3"}) {
    const CliResult result = cli({"tasks", "m.onnx", "--shape", "x=2x3", "--shape", shape});
    const CliResult alone = cli({"tasks", "m.onnx", "--shape", shape});
    for (const CliResult& r : {result, alone}) {
      EXPECT_EQ(r.exit_code, 1) << shape;
      EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    }
  }
  EXPECT_THAT(cli({"tasks", "m.onnx", "--shape", "x=2x4"}).err, HasSubstr("exported for 'x' of 2x3"));
  const std::string note = "tensorsmith: note: input 'x' is 2x1 here, 2x3 in the model\n";
  for (const Words& words :
       std::vector<Words>{{"tasks", "m.onnx"},
                          {"compile", "m.onnx", "-o", "narrow", "--untuned"},
                          {"run", "narrow", "--reference", "m.onnx"},
                          {"bench", "m.onnx", "--untuned", "--seconds", "0.02"},
                          {"tune", "m.onnx", "-o", "tuned", "--trials", "1", "--quiet"}}) {
    Words given = words;
    given.insert(given.end(), {"--shape", "x=2x1"});
    const CliResult result = cli(given);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr(note)) << words[0];
  }
  EXPECT_THAT(cli({"predict", "m.onnx", "--model", "none", "--shape", "x=2x1"}).out,
              HasSubstr("2x3 in the model"));
  EXPECT_THAT(cli({"tasks", "m.onnx", "--shape", "x=2x3", "--shape", "w=3"}).err, HasSubstr("no input"));
  ASSERT_EQ(cli({"compile", "m.onnx", "-o", "out", "--untuned", "--shape", "x=2x3"}).exit_code, 0);
  EXPECT_EQ(cli({"run", "out", "--reference", "m.onnx", "--shape", "x=2x3"}).exit_code, 0);
  EXPECT_EQ(cli({"run", "out", "--reference", "m.onnx", "--shape", "x=4x3"}).exit_code, 1);
  // A shape that would have no effect is refused.
  EXPECT_EQ(cli({"run", "out", "--shape", "x=2x3"}).exit_code, 2);
  EXPECT_THAT(cli({"bench", "out", "--shape", "x=2x3"}).err, HasSubstr("--shape x=2x3"));
}

}  // namespace
}  // namespace tensorsmith::tools::console_test
