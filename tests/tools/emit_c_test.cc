// `compile --emit c`: the sources build without a warning under strict C99 and with all the processor has, and the
// program computes what the model's authors expect. `compile --backend c`: the same kernels under our runtime.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <fstream>

#include "cli_support.h"
#include "graph/graph.h"

namespace tensorsmith::testing {
namespace {

namespace fs = std::filesystem;

// The exit status, -1 if it did not end by itself.
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
  fs::path model_directory() const { return fs::path(TENSORSMITH_TEST_MODELS) / "mnist_8"; }
  std::string model() const { return (model_directory() / "model.onnx").string(); }

  TemporaryDirectory directory_;
  CliOptions options_;
};

TEST_F(EmitC, BuildsWithAnyFlagsAndComputesTheModel) {
  const CliResult emitted = cli({"compile", model(), "-o", "sources", "--untuned", "--emit", "c"});
  ASSERT_EQ(emitted.exit_code, 0) << emitted.err;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(directory_.path() / "sources"))
    if (entry.path().extension() == ".c") files.push_back(entry.path().string());
  EXPECT_GT(files.size(), 2u);  // kernels, and model.c
  files.push_back(TENSORSMITH_SOURCE_DIR "/tests/tools/emitted_main.c");

  const std::vector<std::vector<std::string>> builds = {
      {"-Wall", "-Werror", "-pedantic", "-DTENSORSMITH_VECTORS=0"},
      {"-Wall", "-Werror", "-pedantic"},
      {"-O2", "-march=native", "-ffp-contract=off"}};
  for (size_t b = 0; b < builds.size(); ++b) {
    const std::string program = directory_.file("program" + std::to_string(b));
    std::vector<std::string> words = {"cc", "-std=c99", "-I" + directory_.file("sources")};
    words.insert(words.end(), builds[b].begin(), builds[b].end());
    words.insert(words.end(), files.begin(), files.end());
    words.insert(words.end(), {"-o", program, "-lm"});
    ASSERT_EQ(run_program(words), 0) << "build " << b;

    for (const char* set : {"test_data_set_0", "test_data_set_1"}) {
      const auto input = graph::read_tensor_proto((model_directory() / set / "input_0.pb").string());
      const auto want = graph::read_tensor_proto((model_directory() / set / "output_0.pb").string());
      ASSERT_TRUE(input.ok() && want.ok());
      const std::string in = directory_.file("input.raw"), out = directory_.file("output.raw");
      std::ofstream(in, std::ios::binary)
          .write(reinterpret_cast<const char*>(input->data.data()),
                 static_cast<std::streamsize>(input->data.size()));
      ASSERT_EQ(run_program({program, directory_.file("sources/weights.bin"), out,
                             std::to_string(want->data.size()), in}),
                0);
      lower::Tensor got = *want;
      std::ifstream(out, std::ios::binary)
          .read(reinterpret_cast<char*>(got.data.data()), static_cast<std::streamsize>(got.data.size()));
      for (int64_t i = 0; i < want->num_elements(); ++i)
        ASSERT_NEAR(got.at(i).f, want->at(i).f, 1e-3 + 1e-4 * std::fabs(want->at(i).f))
            << "build " << b << ", " << set << ", element " << i;
    }
  }
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

// What cannot be written completely leaves nothing behind, so that the same command works when there is room.
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
}  // namespace tensorsmith::testing
