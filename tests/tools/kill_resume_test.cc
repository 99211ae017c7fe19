// kill -9 of a tuning run at random moments: the database stays sound, the next run goes on, nothing is
// measured twice.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "cli_support.h"

namespace tensorsmith::testing {
namespace {

namespace fs = std::filesystem;

int64_t record_count(const CliOptions& options) {
  const CliResult info = run_cli({"db", "info", "tensorsmith.db", "--json"}, options);
  return info.exit_code == 0 ? nlohmann::json::parse(info.out)["records"].get<int64_t>() : -1;
}

TEST(KillResume, TwentyKillsLoseNothing) {
  if (onnx_test_data().empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  const fs::path test_case = onnx_test_data() / "pytorch-converted/test_Conv2d_padding";
  const char* seed_text = std::getenv("TENSORSMITH_TEST_SEED");
  const uint64_t seed = seed_text ? std::strtoull(seed_text, nullptr, 10) : 20261121;
  SCOPED_TRACE("TENSORSMITH_TEST_SEED=" + std::to_string(seed));
  Rng rng(seed);
  TemporaryDirectory directory;
  CliOptions options;
  options.directory = directory.path();
  const std::string model = (test_case / "model.onnx").string();
  int64_t before = 0;
  int64_t longest =
      1'500'000;  // microseconds until a kill; more where the machine is too busy for a measurement
  for (int kill_number = 0; kill_number < 20; ++kill_number) {
    const pid_t pid = start_cli({"tune", model, "-o", "out", "--seconds", "60", "--quiet"}, options);
    usleep(static_cast<useconds_t>(rng.uniform_int(20'000, longest)));
    ASSERT_EQ(kill(pid, SIGKILL), 0) << "the run ended before it was killed";
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    if (!fs::exists(directory.path() / "tensorsmith.db")) continue;  // killed before the database was opened
    // A file that exists but is still empty is opened as a new database by the next run.
    const CliResult check = run_cli({"db", "check", "tensorsmith.db"}, options);
    if (fs::file_size(directory.path() / "tensorsmith.db") > 0) {
      EXPECT_EQ(check.exit_code, 0) << "after kill " << kill_number << ": " << check.err;
      const int64_t count = record_count(options);
      EXPECT_GE(count, before) << "records were lost at kill " << kill_number;
      before = count;
    }
    if (before == 0) longest = std::min<int64_t>(longest * 5 / 4, 20'000'000);
    EXPECT_FALSE(fs::exists(directory.path() / "out")) << "a compiled model of an unfinished run";
  }
  EXPECT_GT(before, 0) << "no run got as far as a measurement";

  // A run to its end: what it found plus what it measured is what is there. A candidate measured twice would
  // be counted as a trial, but not stored again.
  const CliResult last = run_cli({"tune", model, "-o", "out", "--trials", "8", "--json", "--quiet"}, options);
  ASSERT_EQ(last.exit_code, 0) << last.err;
  const auto report = nlohmann::json::parse(last.out);
  EXPECT_EQ(report["resumed"].get<int64_t>(), before);
  EXPECT_EQ(record_count(options), before + report["trials"].get<int64_t>());
  EXPECT_EQ(run_cli({"run", "out", "--check", test_case.string()}, options).exit_code, 0);
}

}  // namespace
}  // namespace tensorsmith::testing
