// Every command is killed right before each call that changes the disk, in turn. It leaves the old
// files or the complete new ones, and the next run works.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "cli_support.h"
#include "graph/onnx_model_builder.h"
#include "learn/latency_testing.h"
#include "record/database.h"

namespace tensorsmith::testing::kill_at_call_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using record::testing::read_file;
using record::testing::write_file;

class KillAtCall : public ::testing::Test {
 protected:
  KillAtCall() { options_.directory = folder_.path(); }
  CliResult cli(const Words& words) const { return run_cli(words, options_); }
  // Runs the command and kills it at its first call, at its second, ..., until a run completes;
  // calls sound() after each run. Returns the number of kills.
  int kill_everywhere(const Words& words, const std::function<void()>& before,
                      const std::function<void()>& sound) {
    for (int call = 1; call < 2000; ++call) {
      SCOPED_TRACE(words[0] + " killed at call " + std::to_string(call));
      before();
      CliOptions options = options_;
      options.environment = {std::string("LD_PRELOAD=") + KILL_AT_CALL,
                             "TENSORSMITH_KILL_AT=" + std::to_string(call)};
      const CliResult result = run_cli(words, options);
      EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 137) << result.exit_code << result.err;
      sound();
      if (result.exit_code == 0 || HasFailure()) return call - 1;
    }
    ADD_FAILURE() << "never ended";
    return 0;
  }
  // Like kill_everywhere, for an output of one file: it is the old or the new one, to the byte.
  void expect_old_or_new(Words words, const std::string& old_file) {
    words.push_back("out");
    const std::string old = read_file(folder_.file(old_file));
    write_file(folder_.file("out"), old);
    ASSERT_EQ(cli(words).exit_code, 0) << cli(words).err;
    const std::string fresh = read_file(folder_.file("out"));
    ASSERT_NE(fresh, old);
    const int kills = kill_everywhere(
        words, [&] { write_file(folder_.file("out"), old); },
        [&] {
          const std::string now = read_file(folder_.file("out"));
          EXPECT_TRUE(now == old || now == fresh) << now.size() << " bytes";
        });
    EXPECT_GE(kills, 2);  // at least the flush and the rename
    EXPECT_EQ(read_file(folder_.file("out")), fresh);
  }

  TemporaryDirectory folder_;
  CliOptions options_;
};

TEST_F(KillAtCall, CompiledModels) {
  for (const char* op : {"Relu", "Neg"}) {
    graph::testing::ModelBuilder builder;
    builder.input("x", {2, 3}).output("y").node(op, {"x"}, {"y"});
    write_file(folder_.file(std::string(op) + ".onnx"), builder.bytes());
  }
  const Words compile = {"compile", "Neg.onnx", "-o", "out", "--untuned"};
  const int kills = kill_everywhere(
      compile, [&] { ASSERT_EQ(cli({"compile", "Relu.onnx", "-o", "out", "--untuned"}).exit_code, 0); },
      [&] {
        const bool old = cli({"run", "out", "--reference", "Relu.onnx"}).exit_code == 0;
        const bool fresh = cli({"run", "out", "--reference", "Neg.onnx"}).exit_code == 0;
        EXPECT_TRUE(old != fresh);
      });
  EXPECT_GE(kills, 8);
  EXPECT_EQ(cli({"run", "out", "--reference", "Neg.onnx"}).exit_code, 0);
}

TEST_F(KillAtCall, FilesOfMeasuredPrograms) {
  learn::testing::make_store(folder_.file("s"), {.tasks = 6});
  for (const char* seed : {"1", "2"})
    ASSERT_EQ(cli({"dataset", "split", "s", "--seed", seed, "-o", std::string("split") + seed}).exit_code, 0);
  expect_old_or_new({"dataset", "split", "s", "--seed", "3", "-o"}, "split1");
  ASSERT_EQ(
      cli({"train", "--model", "roofline", "--store", "s", "--split", "split1", "-o", "model"}).exit_code, 0);
  expect_old_or_new({"train", "--model", "roofline", "--store", "s", "--split", "split2", "-o"}, "model");
  ASSERT_EQ(cli({"dataset", "export", "s", "--split", "split1", "--part", "test", "-o", "part"}).exit_code,
            0);
  expect_old_or_new({"dataset", "export", "s", "-o"}, "part");
}

TEST_F(KillAtCall, RecordsAndNetworks) {
  {
    auto database = record::Database::open(folder_.file("a.db"));
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)->add({record::testing::make_record(1)}).ok());
    ASSERT_TRUE((*database)->export_jsonl(folder_.file("one.jsonl")).ok());
    for (int i = 2; i < 50; ++i) ASSERT_TRUE((*database)->add({record::testing::make_record(i)}).ok());
  }
  expect_old_or_new({"db", "export", "a.db"}, "one.jsonl");
  ASSERT_EQ(cli({"zoo", "export", "bert_tiny", "--sequence", "4", "-o", "four.onnx"}).exit_code, 0);
  expect_old_or_new({"zoo", "export", "bert_tiny", "--sequence", "8", "-o"}, "four.onnx");
  // A database is changed in place: its old records stay.
  const int kills = kill_everywhere(
      {"db", "import", "b.db", "out"},
      [&] {
        fs::remove(folder_.path() / "b.db");
        fs::remove(folder_.path() / "b.db-journal");
        ASSERT_EQ(cli({"db", "import", "b.db", "one.jsonl"}).exit_code, 0);
        ASSERT_EQ(cli({"db", "export", "a.db", "out", "--force"}).exit_code, 0);
      },
      [&] {
        EXPECT_EQ(cli({"db", "check", "b.db"}).exit_code, 0) << cli({"db", "check", "b.db"}).err;
        ASSERT_EQ(cli({"db", "export", "b.db", "after.jsonl"}).exit_code, 0);
        EXPECT_NE(read_file(folder_.file("after.jsonl")).find(record::testing::make_record(1).key()),
                  std::string::npos);
      });
  EXPECT_GE(kills, 2);
}

}  // namespace
}  // namespace tensorsmith::testing::kill_at_call_test
