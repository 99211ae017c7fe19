// Training by several processes (--ranks): they make the same model as one process, resume together
// after one of them was killed, and refuse each other if their data differ.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <cmath>
#include <future>
#include <thread>

#include "base/statistics.h"
#include "cli_support.h"
#include "lab/kinds/kinds.h"
#include "learn/latency_testing.h"
#include "record/record_testing.h"

namespace tensorsmith::testing::training_processes_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class TrainingProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.directory = folder_.path();
    learn::testing::make_store(folder_.file("store"), {.tasks = 12, .noise = 0.02, .seed = 1});
    ASSERT_EQ(cli({"dataset", "split", "store", "-o", "split"}).exit_code, 0);
  }

  CliResult cli(const Words& arguments) { return run_cli(arguments, options_); }
  std::vector<CliResult> together(const std::vector<Words>& commands) {
    return run_ranks(commands, options_);
  }

  static Words training(const std::string& output, int epochs, const std::string& loss = "mse") {
    return {"train",    "--model", "mlp",          "--store",  "store",
            "--split",  "split",   "--threads",    "1",        "--quiet",
            "-o",       output,    "--param",      "width=16", "--param",
            "batch=96", "--param", "loss=" + loss, "--param",  "epochs=" + std::to_string(epochs)};
  }
  void expect_trained(const Words& command, size_t ranks) {
    for (const CliResult& result : together(std::vector<Words>(ranks, command)))
      ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  // Returns the median difference between the logarithms of two models' predictions for all
  // programs.
  double difference(const std::string& one, const std::string& other) {
    const auto store = learn::Store::open(folder_.file("store")).value();
    const auto of_store = learn::devices_of(*store).value();
    std::vector<const target::Device*> devices;
    for (const target::Device& device : of_store) devices.push_back(&device);
    std::vector<int64_t> all;
    for (int64_t i = 0; i < store->size(); ++i) all.push_back(i);
    std::vector<std::vector<learn::Prediction>> predicted;
    for (const std::string& name : {one, other}) {
      const auto model = lab::cost_model_kinds().load(folder_.file(name));
      EXPECT_TRUE(model.ok()) << model.error().message();
      predicted.push_back(learn::predict_records(**model, *store, devices, all).value());
    }
    std::vector<double> apart;
    for (size_t i = 0; i < all.size(); ++i)
      apart.push_back(std::abs(std::log(predicted[0][i].seconds / predicted[1][i].seconds)));
    return quantile(apart, 0.5);
  }

  TemporaryDirectory folder_;
  CliOptions options_;
};

// The loss is a mean over programs, so the gradients of the shares add up to that of the batch.
TEST_F(TrainingProcesses, MakeTheModelOfOne) {
  ASSERT_EQ(cli(training("alone", 5)).exit_code, 0);
  expect_trained(training("three", 5), 3);
  EXPECT_LT(difference("alone", "three"), 1e-3);
  auto other = training("other", 5);
  other.insert(other.end(), {"--seed", "1"});
  ASSERT_EQ(cli(other).exit_code, 0);
  EXPECT_GT(difference("alone", "other"), 1e-2);
  EXPECT_FALSE(fs::exists(folder_.path() / "three.checkpoint"));
}

// Lists of programs to rank are not split among processes.
TEST_F(TrainingProcesses, Rank) { expect_trained(training("ranks", 2, "lambdarank"), 2); }

TEST_F(TrainingProcesses, GoOnAfterAKill) {
  const Words command = training("model", 60);
  expect_trained(training("whole", 60), 2);
  const int port = free_port();
  const pid_t doomed = start_cli(as_rank(command, 1, 2, port), options_);
  auto first = std::async(std::launch::async, [&] { return cli(as_rank(command, 0, 2, port)); });
  const fs::path checkpoint = folder_.path() / "model.checkpoint";
  for (int i = 0; i < 3000 && !fs::exists(checkpoint); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(fs::exists(checkpoint));
  kill(doomed, SIGKILL);
  waitpid(doomed, nullptr, 0);
  const CliResult left = first.get();
  EXPECT_EQ(left.exit_code, 1);
  EXPECT_THAT(left.err, HasSubstr("another process of the training has ended"));
  EXPECT_FALSE(fs::exists(folder_.path() / "model"));
  expect_trained(command, 2);
  EXPECT_EQ(record::testing::read_file(folder_.file("model")).size(),
            record::testing::read_file(folder_.file("whole")).size());
  EXPECT_EQ(difference("model", "whole"), 0);
}

TEST_F(TrainingProcesses, RefuseOtherData) {
  Words other = training("b", 2);
  other.insert(other.end(), {"--max-records", "10"});
  const auto results = together({training("a", 2), other});
  EXPECT_EQ(results[0].exit_code, 1);
  EXPECT_EQ(results[1].exit_code, 1);
  EXPECT_THAT(results[0].err, HasSubstr("another process trains with other data or parameters"));
  EXPECT_THAT(results[1].err, HasSubstr("process 1: trains with other data or parameters than process 0"));
}

TEST_F(TrainingProcesses, OptionsFitTogether) {
  const auto refused = [&](Words more, const std::string& what) {
    Words command = training("a", 1);
    command.insert(command.end(), more.begin(), more.end());
    const CliResult result = cli(command);
    EXPECT_EQ(result.exit_code, 1) << what;
    EXPECT_THAT(result.err, HasSubstr(what));
  };
  refused({"--ranks", "2", "--rank", "2", "--master", "a:1"}, "--rank: must be less than --ranks, 2");
  refused({"--ranks", "2"}, "--master: must be HOST:PORT");
  refused({"--ranks", "2", "--master", "here:0"}, "--master here:0: must be HOST:PORT");
  refused({"--ranks", "2", "--rank", "1", "--master", "no.such.host.invalid:9"}, "is an unknown host");
  const CliResult roofline = cli({"train", "--model", "xgboost", "--store", "store", "--split", "split", "-o",
                                  "x", "--ranks", "2", "--master", "127.0.0.1:9"});
  EXPECT_EQ(roofline.exit_code, 1);
  EXPECT_THAT(roofline.err, HasSubstr("xgboost can only be trained by one process"));
}

}  // namespace
}  // namespace tensorsmith::testing::training_processes_test
