// `compile --emit c`: the sources compile without a warning under strict C99 and with all features
// of the processor, and the program computes what the model's authors expect. `compile --backend
// c`: the same kernels under our runtime.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>
#include <set>

#include "cli_support.h"
#include "graph/graph.h"

namespace tensorsmith::testing::emit_c_test {
namespace {

namespace fs = std::filesystem;

// Returns the exit status, or -1 if the program did not exit by itself.
int run_program(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return -1;
  int state = 0;
  if (::waitpid(child, &state, 0) != child) return -1;
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

class EmitC : public ::testing::Test {
 protected:
  void SetUp() override { options_.directory = directory_.path(); }
  CliResult cli(const std::vector<std::string>& arguments) const { return run_cli(arguments, options_); }
  static fs::path folder_of(const std::string& name) { return fs::path(TENSORSMITH_TEST_MODELS) / name; }
  fs::path model_directory() const { return folder_of("mnist_8"); }
  std::string model() const { return (model_directory() / "model.onnx").string(); }

  // Returns the files that `compile --emit c` wrote to the folder.
  std::vector<std::string> sources(const std::string& folder) const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(directory_.path() / folder))
      if (entry.path().extension() == ".c") files.push_back(entry.path().string());
    EXPECT_GT(files.size(), 2u);  // kernels and the model
    return files;
  }

  // Returns the arguments of emitted_main for a model and a data set of its authors; the output
  // file is named after the model.
  std::vector<std::string> arguments(const std::string& sources, const std::string& name,
                                     const std::string& set = "test_data_set_0") const {
    const lower::Tensor input = tensor(name, set, "input_0.pb");
    const std::string in = directory_.file(name + ".input.raw");
    std::ofstream(in, std::ios::binary)
        .write(reinterpret_cast<const char*>(input.data.data()),
               static_cast<std::streamsize>(input.data.size()));
    return {directory_.file(sources + "/weights.bin"), directory_.file(name + ".output.raw"),
            std::to_string(tensor(name, set, "output_0.pb").data.size()), in};
  }
  void expect_output(const std::string& name, const std::string& set = "test_data_set_0") const {
    const lower::Tensor want = tensor(name, set, "output_0.pb");
    lower::Tensor got = want;
    std::fill(got.data.begin(), got.data.end(), std::byte{0xff});  // NaN
    std::ifstream(directory_.file(name + ".output.raw"), std::ios::binary)
        .read(reinterpret_cast<char*>(got.data.data()), static_cast<std::streamsize>(got.data.size()));
    for (int64_t i = 0; i < want.num_elements(); ++i)
      ASSERT_NEAR(got.at(i).f, want.at(i).f, 1e-3 + 1e-4 * std::fabs(want.at(i).f))
          << name << ", " << set << ", element " << i;
  }
  static lower::Tensor tensor(const std::string& name, const std::string& set, const std::string& file) {
    return graph::read_tensor_proto((folder_of(name) / set / file).string()).value();
  }

  TemporaryDirectory directory_;
  CliOptions options_;
};

std::vector<std::string> joined(std::vector<std::string> words,
                                std::initializer_list<std::vector<std::string>> more) {
  for (const auto& list : more) words.insert(words.end(), list.begin(), list.end());
  return words;
}

const std::string kMain = TENSORSMITH_SOURCE_DIR "/tests/tools/emitted_main.c";

TEST_F(EmitC, BuildsWithAnyFlagsAndComputesTheModel) {
  const CliResult emitted = cli({"compile", model(), "-o", "sources", "--untuned", "--emit", "c"});
  ASSERT_EQ(emitted.exit_code, 0) << emitted.err;
  const std::vector<std::vector<std::string>> builds = {
      {"-Wall", "-Werror", "-pedantic", "-DTENSORSMITH_VECTORS=0"},
      {"-Wall", "-Werror", "-pedantic", "-Wmissing-prototypes"},
      {"-O2", "-march=native", "-ffp-contract=off"}};
  for (size_t b = 0; b < builds.size(); ++b) {
    const std::string program = directory_.file("program" + std::to_string(b));
    ASSERT_EQ(run_program(joined({"cc", "-std=c99", "-I" + directory_.file("sources")},
                                 {builds[b], sources("sources"), {kMain, "-o", program, "-lm"}})),
              0)
        << "build " << b;
    for (const char* set : {"test_data_set_0", "test_data_set_1"}) {
      ASSERT_EQ(run_program(joined({program}, {arguments("sources", "mnist_8", set)})), 0);
      expect_output("mnist_8", set);
    }
  }
}

// The names of each model begin with its prefix, also in objects of one folder, and all share one
// header of kernels.
TEST_F(EmitC, TwoModelsInOneProgram) {
  const CliResult first =
      cli({"compile", model(), "-o", "a", "--untuned", "--emit", "c", "--prefix", "first"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const CliResult second =
      cli({"compile", (folder_of("super_resolution_10") / "model.onnx").string(), "--shape",
           "input=1x1x224x224", "-o", "b", "--untuned", "--emit", "c", "--prefix", "second"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  std::set<std::string> names;
  for (const char* folder : {"a", "b"})
    for (const std::string& file : sources(folder))
      EXPECT_TRUE(names.insert(fs::path(file).filename()).second);
  const auto text = [&](const std::string& file) {
    std::ifstream in(directory_.file(file), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(text("a/tensorsmith_kernels.h"), text("b/tensorsmith_kernels.h"));

  const std::string program = directory_.file("program");
  ASSERT_EQ(run_program(joined({"cc", "-std=c99", "-O2", "-Wall", "-Werror", "-pedantic", "-DTWO_MODELS",
                                "-I" + directory_.file("a"), "-I" + directory_.file("b")},
                               {sources("a"), sources("b"), {kMain, "-o", program, "-lm"}})),
            0);
  ASSERT_EQ(
      run_program(joined({program}, {arguments("a", "mnist_8"), arguments("b", "super_resolution_10")})), 0);
  expect_output("mnist_8");
  expect_output("super_resolution_10");
}

TEST_F(EmitC, PrefixesAreLowerCaseNames) {
  for (const std::string prefix : {"", "9lives", "Net", "_net", "a-b", "a.b", "../a"}) {
    const CliResult result =
        cli({"compile", model(), "-o", "sources", "--untuned", "--emit", "c", "--prefix", prefix});
    EXPECT_NE(result.exit_code, 0) << prefix;
    EXPECT_NE(result.err.find("--prefix"), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(directory_.path() / "sources"));
  }
  EXPECT_NE(cli({"compile", model(), "-o", "out", "--untuned", "--prefix", "net"}).exit_code, 0);
}

TEST_F(EmitC, ByTheSystemsCompilerForOurRuntime) {
  const CliResult compiled = cli({"compile", model(), "-o", "out", "--untuned", "--backend", "c"});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const CliResult run = cli({"run", "out", "--check", model_directory().string(), "--threads", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

TEST_F(EmitC, RefusesWhatItWouldOverwriteAndWhatItDoesNotKnow) {
  ASSERT_EQ(cli({"compile", model(), "-o", "out", "--untuned"}).exit_code, 0);
  const CliResult occupied = cli({"compile", model(), "-o", "out", "--untuned", "--emit", "c"});
  EXPECT_EQ(occupied.exit_code, 1);
  EXPECT_NE(occupied.err.find("is not empty"), std::string::npos) << occupied.err;
  EXPECT_TRUE(fs::exists(directory_.path() / "out/manifest.json"));
  EXPECT_NE(cli({"compile", model(), "-o", "other", "--untuned", "--emit", "fortran"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(directory_.path() / "other"));
}

// Files are written completely or not at all, so that the same command works once there is room.
TEST_F(EmitC, AllFilesOrNone) {
  const auto emit = [&] { return cli({"compile", model(), "-o", "sources", "--untuned", "--emit", "c"}); };
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 8192;  // enough for a kernel, not for the header
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const CliResult failed = emit();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_NE(failed.err.find("nothing was written"), std::string::npos) << failed.err;
  EXPECT_FALSE(fs::exists(directory_.path() / "sources"));
  for (const auto& entry : fs::directory_iterator(directory_.path()))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  EXPECT_EQ(emit().exit_code, 0);
}

}  // namespace
}  // namespace tensorsmith::testing::emit_c_test
