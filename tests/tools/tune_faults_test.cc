// `tune` with wrong programs, when told to end, and when the system refuses resources.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli_support.h"

namespace tensorsmith::testing::tune_faults_test {
namespace {

namespace fs = std::filesystem;

class TuneFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (onnx_test_data().empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
    case_ = onnx_test_data() / "pytorch-converted/test_Conv2d_padding";
    model_ = (case_ / "model.onnx").string();
    options_.directory = directory_.path();
  }
  CliResult cli(const std::vector<std::string>& arguments) const { return run_cli(arguments, options_); }
  bool exists(const std::string& name) const { return fs::exists(directory_.path() / name); }
  std::string contents(const std::string& name) const {
    std::ifstream in(directory_.path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Starts a run and waits until it has measured something.
  pid_t start_tuning() const {
    const pid_t pid = start_cli({"tune", model_, "-o", "out", "--seconds", "60", "--quiet"}, options_);
    for (int i = 0; i < 600; ++i) {
      usleep(100'000);
      const CliResult info = cli({"db", "info", "tensorsmith.db", "--json"});
      if (info.exit_code == 0 && nlohmann::json::parse(info.out)["records"].get<int>() > 0) break;
    }
    return pid;
  }
  static int status_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }

  TemporaryDirectory directory_;
  CliOptions options_;
  fs::path case_;
  std::string model_;
};

#ifdef WRONG_RESULTS  // not with a sanitizer
TEST_F(TuneFaults, WrongProgramsMakeNoModel) {
  ASSERT_EQ(cli({"compile", model_, "-o", "kept", "--untuned"}).exit_code, 0);
  const std::string manifest = contents("kept/manifest.json"), kernels = contents("kept/kernels.so");
  options_.environment = {"LD_PRELOAD=" WRONG_RESULTS};
  for (const char* directory : {"out", "kept"}) {
    for (const bool alone : {false, true}) {
      std::vector<std::string> arguments{"tune", model_, "-o", directory, "--trials", "6", "--quiet"};
      if (alone) arguments.emplace_back("--skip-end-to-end");
      const CliResult tune = cli(arguments);
      EXPECT_EQ(tune.exit_code, 1) << tune.out << tune.err;
      EXPECT_EQ(std::count(tune.err.begin(), tune.err.end(), '\n'), 1) << tune.err;
      for (const char* words : {"task 'conv", "wrong result", "no model"})
        EXPECT_NE(tune.err.find(words), std::string::npos) << tune.err;
      EXPECT_EQ(tune.out, "");
    }
  }
  EXPECT_FALSE(exists("out"));
  EXPECT_EQ(contents("kept/manifest.json"), manifest);
  EXPECT_EQ(contents("kept/kernels.so"), kernels);
  // The same database, without the fault: programs that were found wrong are checked again.
  options_.environment.clear();
  const CliResult tune = cli({"tune", model_, "-o", "out", "--trials", "2", "--quiet"});
  EXPECT_EQ(tune.exit_code, 0) << tune.err;
  EXPECT_EQ(cli({"run", "out", "--check", case_.string()}).exit_code, 0);
}

TEST_F(TuneFaults, FewThreadsAreNoCrash) {
  fs::permissions(directory_.path(), fs::perms(0777));
  options_.drop_privileges = true;
  int made = 0;
  for (const int limit : {1, 2, 3, 4, 6, 64}) {
    SCOPED_TRACE(limit);
    options_.process_limit = limit;
    const CliResult tune = cli({"tune", model_, "-o", "out", "--trials", "4", "--db", "few.db"});
    EXPECT_TRUE(tune.exit_code == 0 || tune.exit_code == 1) << tune.exit_code << tune.err;
    EXPECT_EQ(tune.err.find("bug"), std::string::npos) << tune.err;
    EXPECT_EQ(exists("out"), tune.exit_code == 0);
    made += tune.exit_code == 0;
    if (tune.exit_code != 0) {
      EXPECT_NE(tune.err.find("tensorsmith: error: "), std::string::npos) << tune.err;
    }
    fs::remove_all(directory_.path() / "out");
  }
  EXPECT_GT(made, 0);
}
#endif

TEST_F(TuneFaults, SignalsThatAskForTheEndKeepTheBestSoFar) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    SCOPED_TRACE(signal);
    const pid_t pid = start_tuning();
    kill(pid, signal);
    const int status = status_of(pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status;
    EXPECT_EQ(cli({"run", "out", "--check", case_.string()}).exit_code, 0);
    fs::remove_all(directory_.path() / "out");
    fs::remove(directory_.path() / "tensorsmith.db");
  }
}

// A run that measures on a fleet without workers waits for its first measurement.
TEST_F(TuneFaults, EndedBeforeAMeasurementItWritesNoModel) {
  ASSERT_EQ(cli({"compile", model_, "-o", "kept", "--untuned"}).exit_code, 0);
  const std::string manifest = contents("kept/manifest.json");
  for (const bool alone : {false, true}) {
    std::vector<std::string> arguments{"tune", model_, "-o", "kept", "--fleet", "--report", "run.html"};
    if (alone) arguments.emplace_back("--skip-end-to-end");
    const CliResult tune = interrupt_cli(arguments, "no worker measures programs", options_);
    EXPECT_EQ(tune.exit_code, 130) << tune.err;
    EXPECT_EQ(tune.out, "");
    const std::string last =
        "\ntensorsmith: error: interrupted: nothing was measured, so no model was written\n";
    EXPECT_TRUE(tune.err.ends_with(last)) << tune.err;
    EXPECT_EQ(contents("kept/manifest.json"), manifest);
    EXPECT_FALSE(exists("run.html"));
  }
}

TEST_F(TuneFaults, ASecondSignalEndsAtOnce) {
  const pid_t pid = start_tuning();
  kill(pid, SIGSTOP);
  kill(pid, SIGHUP);
  kill(pid, SIGTERM);
  kill(pid, SIGCONT);
  const int status = status_of(pid);
  EXPECT_TRUE(WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGHUP)) << status;
  EXPECT_FALSE(exists("out"));
}

// With nohup, the terminal may close.
TEST_F(TuneFaults, AnIgnoredHangUpStaysIgnored) {
  signal(SIGHUP, SIG_IGN);
  const pid_t pid = start_tuning();
  signal(SIGHUP, SIG_DFL);
  kill(pid, SIGHUP);
  usleep(700'000);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, WNOHANG), 0) << "the run ended";
  kill(pid, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 130);
}

}  // namespace
}  // namespace tensorsmith::testing::tune_faults_test
