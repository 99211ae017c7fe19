// Sends kill -9 to tune, dataset collect and train at random moments: existing files stay sound,
// the next run resumes, nothing is done twice. TENSORSMITH_TEST_KILLS gives the number of kills for
// each.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "cli_support.h"
#include "learn/latency_testing.h"
#include "record/record_testing.h"

namespace tensorsmith::testing::kill_resume_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using record::testing::read_file;
using record::testing::write_file;

int64_t number_from(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoll(text, nullptr, 10) : otherwise;
}

class KillResume : public ::testing::Test {
 protected:
  KillResume() { options_.directory = folder_.path(); }

  CliResult cli(const Words& arguments) { return run_cli(arguments, options_); }

  // Starts the command and kills it after a random time; returns true if it had already ended.
  bool kill_at_random(const Words& command, int64_t longest_microseconds) {
    const pid_t pid = start_cli(command, options_);
    usleep(static_cast<useconds_t>(rng_.uniform_int(5'000, longest_microseconds)));
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) return true;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return !WIFSIGNALED(status);
  }

  int64_t record_count(const std::string& database) {
    const CliResult info = cli({"db", "info", database, "--json"});
    return info.exit_code == 0 ? nlohmann::json::parse(info.out)["records"].get<int64_t>() : -1;
  }

  // Kills the command `kills` times; the database is sound each time and loses nothing. Returns the
  // number of its records.
  int64_t kill_measurements(const Words& command, const std::string& database, const std::string& output,
                            int64_t kills) {
    int64_t before = 0;
    // Most microseconds until a kill; increased if the machine is too busy for a measurement.
    int64_t longest = 1'500'000;
    for (int64_t number = 0; number < kills || (before == 0 && number < kills + 30); ++number) {
      EXPECT_FALSE(kill_at_random(command, longest)) << "the run ended before it was killed";
      EXPECT_FALSE(fs::exists(folder_.path() / output)) << "the output of an unfinished run";
      const fs::path path = folder_.path() / database;
      // A database file that is missing or still empty is created by the next run.
      if (fs::exists(path) && fs::file_size(path) > 0) {
        const CliResult check = cli({"db", "check", database});
        EXPECT_EQ(check.exit_code, 0) << "after kill " << number << ": " << check.err;
        const int64_t count = record_count(database);
        EXPECT_GE(count, before) << "records were lost at kill " << number;
        before = count;
      }
      if (before == 0) longest = std::min<int64_t>(longest * 5 / 4, 20'000'000);
    }
    EXPECT_GT(before, 0) << "no run got as far as a measurement";
    return before;
  }

  TemporaryDirectory folder_;
  CliOptions options_;
  const uint64_t seed_ = static_cast<uint64_t>(number_from("TENSORSMITH_TEST_SEED", 20261121));
  Rng rng_{seed_};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, "TENSORSMITH_TEST_SEED=" + std::to_string(seed_)};
};

TEST_F(KillResume, Tune) {
  if (onnx_test_data().empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  const fs::path test_case = onnx_test_data() / "pytorch-converted/test_Conv2d_padding";
  const std::string model = (test_case / "model.onnx").string();
  const int64_t before =
      kill_measurements({"tune", model, "-o", "out", "--seconds", "60", "--quiet"}, "tensorsmith.db", "out",
                        number_from("TENSORSMITH_TEST_KILLS", 20));
  // After a complete run, the database has the resumed and the measured records. A candidate
  // measured twice would count as a trial, but would not be stored again.
  const CliResult last = cli({"tune", model, "-o", "out", "--trials", "8", "--json", "--quiet"});
  ASSERT_EQ(last.exit_code, 0) << last.err;
  const auto report = nlohmann::json::parse(last.out);
  EXPECT_EQ(report["resumed"].get<int64_t>(), before);
  EXPECT_EQ(record_count("tensorsmith.db"), before + report["trials"].get<int64_t>());
  EXPECT_EQ(cli({"run", "out", "--check", test_case.string()}).exit_code, 0);
}

TEST_F(KillResume, Collect) {
  const auto collect = [](const std::string& records) {
    return Words{"dataset",    "collect",
                 "--networks", "mobilenet_v3_small",
                 "--device",   "local:threads=1",
                 "-o",         "own.db",
                 "--records",  records,
                 "--batch",    "4",
                 "--slowest",  "5",
                 "--store",    "store",
                 "--json",     "--quiet"};
  };
  const int64_t before =
      kill_measurements(collect("1000000"), "own.db", "store", number_from("TENSORSMITH_TEST_KILLS", 6));
  // On SIGTERM, the command writes a store of its records so far.
  const pid_t pid = start_cli(collect("1000000"), options_);
  for (int waited = 0; waited < 600 && record_count("own.db") <= before; ++waited) usleep(100'000);
  kill(pid, SIGTERM);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status;
  EXPECT_EQ(cli({"dataset", "stats", "store", "--verify"}).exit_code, 0);
  const int64_t kept = record_count("own.db");
  EXPECT_GT(kept, before);

  const CliResult last = cli(collect("10"));
  ASSERT_EQ(last.exit_code, 0) << last.err;
  const auto report = nlohmann::json::parse(last.out);
  EXPECT_EQ(report["resumed"].get<int64_t>(), kept);
  EXPECT_EQ(report["database_records"].get<int64_t>(), kept + report["measured"].get<int64_t>());
  EXPECT_EQ(cli({"dataset", "stats", "store", "--verify"}).exit_code, 0);
}

// Before each training the output is an older model. It is always either this or the new model, and
// kills in between do not change the new model.
TEST_F(KillResume, Train) {
  learn::testing::make_store(folder_.file("store"), {.tasks = 15, .noise = 0.02, .seed = 1});
  ASSERT_EQ(cli({"dataset", "split", "store", "-o", "split"}).exit_code, 0);
  const Words train = {"train",      "--model", "xgboost",      "--store", "store",
                       "--split",    "split",   "--threads",    "1",       "--param",
                       "rounds=300", "--param", "early_stop=0", "--quiet", "-o"};
  const auto into = [&](const std::string& output) {
    Words command = train;
    command.push_back(output);
    return command;
  };
  ASSERT_EQ(
      cli({"train", "--model", "roofline", "--store", "store", "--split", "split", "-o", "old"}).exit_code,
      0);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(cli(into("whole")).exit_code, 0);
  const int64_t whole_microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
  const std::string old = read_file(folder_.file("old")), whole = read_file(folder_.file("whole"));
  ASSERT_NE(old, whole);

  write_file(folder_.file("model"), old);
  int64_t killed = 0, finished = 0, resumed = 0;
  const int64_t kills = number_from("TENSORSMITH_TEST_KILLS", 10);
  int64_t longest = std::max<int64_t>(whole_microseconds * 2 / 3, 50'000);
  while (killed < kills || (resumed == 0 && killed < kills + 30)) {
    if (fs::exists(folder_.path() / "model.checkpoint")) ++resumed;
    if (resumed == 0) longest = longest * 11 / 10;  // the machine is busier than before
    const bool ended = kill_at_random(into("model"), longest);
    const std::string now = read_file(folder_.file("model"));
    ASSERT_TRUE(now == old || now == whole) << "after kill " << killed;
    killed += ended ? 0 : 1;
    if (ended) {
      ASSERT_EQ(now, whole) << "after kill " << killed;
      EXPECT_FALSE(fs::exists(folder_.path() / "model.checkpoint"));
    }
    if (now == old) continue;
    ++finished;
    write_file(folder_.file("model"), old);
  }
  std::cout << killed << " kills, " << finished << " trainings finished, " << resumed << " went on\n";
  EXPECT_GT(resumed, 0);
  ASSERT_EQ(cli(into("model")).exit_code, 0);
  EXPECT_EQ(read_file(folder_.file("model")), whole);
}

}  // namespace
}  // namespace tensorsmith::testing::kill_resume_test
