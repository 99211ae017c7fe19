// `report` and `tune --report` as a user runs them.
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli_support.h"
#include "record/database.h"
#include "record/record_testing.h"
#include "tools/report_server.h"

namespace tensorsmith::testing::report_cli_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using record::testing::read_file;
using record::testing::write_file;
using ::testing::HasSubstr;

class ReportCli : public ::testing::Test {
 protected:
  ReportCli() { options_.directory = folder_.path(); }
  CliResult cli(const std::vector<std::string>& words) const { return run_cli(words, options_); }

  int64_t sql(const std::string& database, const std::string& query) const {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open_v2(folder_.file(database).c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, query.c_str(), -1, &statement, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
  }
  // Returns the data in the page.
  json data_of(const std::string& page) const {
    const std::string text = read_file(folder_.file(page));
    const std::string begin = "<script type=\"application/json\" id=\"data\">";
    const size_t from = text.find(begin);
    EXPECT_NE(from, std::string::npos);
    if (from == std::string::npos) return {};
    return json::parse(text.substr(from + begin.size(), text.find("</script>", from) - from - begin.size()));
  }
  static int64_t records_of(const json& data) {
    int64_t records = 0;
    for (const auto& task : data["tasks"]) records += static_cast<int64_t>(task["records"]["at"].size());
    return records;
  }
  void expect_refused(const std::vector<std::string>& words, const std::string& why) {
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  TemporaryDirectory folder_;
  CliOptions options_;
  const std::string model_ = TENSORSMITH_TEST_MODELS "/mnist_8/model.onnx";
};

TEST_F(ReportCli, HoldsTheRecordsOfTheDatabase) {
  {
    auto database = record::Database::open(folder_.file("a.db")).value();
    std::vector<record::Record> records;
    for (int i = 1; i <= 500; ++i) records.push_back(record::testing::make_record(i));
    for (size_t i = 0; i < records.size(); i += 9) {
      records[i].result = {};
      records[i].result.outcome = i % 2 == 0 ? record::Outcome::kCrash : record::Outcome::kWrongOutput;
      records[i].result.reason = "made up";
    }
    records[7].code_version = record::kCodeVersion + 1;  // of another version: not shown
    ASSERT_TRUE(database->add(records).ok());
  }
  const CliResult result = cli({"report", "a.db", "-o", "a.html", "--cost-model", "none"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json data = data_of("a.html");
  EXPECT_EQ(records_of(data), sql("a.db", "SELECT count(*) FROM record WHERE code_version=1"));
  EXPECT_EQ(records_of(data), 499);
  int64_t failed = 0;
  for (const auto& task : data["tasks"])
    for (const auto& failure : task["failures"]) failed += failure["count"].get<int64_t>();
  EXPECT_EQ(failed, 56);
  EXPECT_EQ(failed, sql("a.db", "SELECT count(*) FROM record WHERE code_version=1 AND outcome<>'ok'"));
  const CliResult printed = cli({"report", "a.db", "--json", "--cost-model", "none"});
  EXPECT_EQ(records_of(json::parse(printed.out)), 499);
}

TEST_F(ReportCli, OnOneProcessor) {
  {
    ASSERT_TRUE(
        record::Database::open(folder_.file("a.db")).value()->add({record::testing::make_record(1)}).ok());
  }
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const CliResult result = cli({"report", "a.db", "-o", "a.html"});
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(ReportCli, WhatIsWrongIsSaidBeforeAnythingIsWritten) {
  {
    ASSERT_TRUE(
        record::Database::open(folder_.file("a.db")).value()->add({record::testing::make_record(1)}).ok());
  }
  write_file(folder_.file("thesis.html"), "<html>The only copy.");
  expect_refused({"report", "a.db", "-o", "thesis.html"}, "is not a report page");
  expect_refused({"report", "a.db", "-o", "a.db"}, "overwritten");
  expect_refused({"report", "a.db", "-o", "none/a.html"}, "does not exist");
  expect_refused({"report", "a.db"}, "-o FILE");
  expect_refused({"report", "missing.db", "-o", "a.html"}, "missing.db");
  expect_refused({"report", "a.db", "a.db", "-o", "a.html"}, "together with the database");
  write_file(folder_.file("peers.json"), "{}");
  expect_refused({"report", "a.db", "-o", "a.html", "--peers", "peers.json"}, "'results'");
  EXPECT_FALSE(fs::exists(folder_.path() / "a.html"));
  EXPECT_EQ(read_file(folder_.file("thesis.html")), "<html>The only copy.");
  for (const char* force : {"", "--force"}) {
    std::vector<std::string> words{"report", "a.db", "--cost-model",
                                   "none",   "-o",   *force ? "thesis.html" : "a.html"};
    if (*force) words.emplace_back(force);
    for (int again = 0; again < 2; ++again) EXPECT_EQ(cli(words).exit_code, 0) << force << again;
  }
}

TEST_F(ReportCli, ATunedModelWithItsRun) {
  const CliResult tuned = cli({"tune", model_, "-o", "out", "--trials", "24", "--db", "a.db", "--threads",
                               "1", "--report", "run.html", "--quiet", "--seed", "7"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const json data = data_of("run.html");
  EXPECT_EQ(records_of(data), sql("a.db", "SELECT count(*) FROM record"));
  ASSERT_EQ(data["models"].size(), 1U);
  const json& model = data["models"][0];
  ASSERT_TRUE(model["end_to_end"].is_object());
  EXPECT_GT(model["end_to_end"]["untuned_seconds"], 0.0);
  EXPECT_GT(model["run_seconds"].size(), 0U);
  // The kernels are those of the compiled model, one after the other, within the run.
  const json manifest = json::parse(read_file(folder_.file("out/manifest.json")));
  ASSERT_EQ(model["kernels"].size(), manifest["calls"].size());
  double end = 0;
  for (size_t c = 0; c < model["kernels"].size(); ++c) {
    const json& kernel = model["kernels"][c];
    EXPECT_EQ(kernel["task"], manifest["calls"][c]["task"]);
    EXPECT_TRUE(kernel["place"].is_number());
    EXPECT_GE(kernel["begin_seconds"].get<double>(), end - 1e-12);
    end = kernel["begin_seconds"].get<double>() + kernel["seconds"].get<double>();
  }
  EXPECT_LE(end, model["kernels_run_seconds"].get<double>());
  for (const auto& task : data["tasks"]) EXPECT_THAT(task["loops"].get<std::string>(), HasSubstr("for "));
  std::string settings = data["settings"].dump();
  for (const char* word : {"--seed 7", "evolutionary", "tensorsmith "})
    EXPECT_THAT(settings, HasSubstr(word));

  // The same page results from the files that the run left.
  const CliResult report = cli({"report", "a.db", "out", "-o", "again.html", "--cost-model", "none"});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  const json again = data_of("again.html");
  EXPECT_EQ(records_of(again), records_of(data));
  EXPECT_EQ(again["models"][0]["kernels"].size(), model["kernels"].size());
  EXPECT_EQ(again["models"][0]["end_to_end"], model["end_to_end"]);
  int calls = 0;
  for (const auto& task : again["models"][0]["tasks"]) calls += task["calls"].get<int>();
  EXPECT_EQ(static_cast<size_t>(calls), model["kernels"].size());
  const CliResult unrun = cli({"report", "out", "--json", "--no-run"});
  ASSERT_EQ(unrun.exit_code, 0) << unrun.err;
  EXPECT_TRUE(json::parse(unrun.out)["models"][0]["run_seconds"].empty());
  expect_refused({"report", "out", "-o", "out/report.html"}, "is inside");

  // Compares with the run's page, and with the data that the page was made from.
  ASSERT_EQ(
      cli({"report", "a.db", "--beside", "run.html", "-o", "two.html", "--cost-model", "none"}).exit_code, 0);
  const json two = data_of("two.html");
  EXPECT_EQ(two["beside"], data);
  EXPECT_EQ(records_of(two), records_of(data));
  const CliResult both = cli({"report", "out", "--beside", "a.db", "--beside", "out", "--no-run", "--json"});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_EQ(records_of(json::parse(both.out)["beside"]), records_of(data));
  EXPECT_EQ(json::parse(both.out)["beside"]["models"].size(), 1U);
  // A page shows at most two runs.
  const CliResult third = cli({"report", "a.db", "--beside", "two.html", "--json"});
  EXPECT_FALSE(json::parse(third.out)["beside"].contains("beside"));
  expect_refused({"report", "a.db", "--beside", "two.html", "-o", "two.html"}, "overwritten");
  expect_refused({"report", "a.db", "--beside", "none.html", "-o", "three.html"}, "none.html");
}

TEST_F(ReportCli, AnInterruptedRunHasItsReport) {
  const pid_t pid = start_cli({"tune", model_, "-o", "out", "--seconds", "300", "--db", "a.db", "--threads",
                               "1", "--report", "run.html", "--quiet"},
                              options_);
  bool measured = false;
  for (int i = 0; i < 1200 && !measured; ++i) {
    usleep(100'000);
    const CliResult info = cli({"db", "info", "a.db", "--json"});
    measured = info.exit_code == 0 && json::parse(info.out)["records"].get<int>() > 0;
  }
  EXPECT_TRUE(measured);
  kill(pid, SIGINT);
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const json data = data_of("run.html");
  EXPECT_EQ(records_of(data), sql("a.db", "SELECT count(*) FROM record"));
  EXPECT_EQ(data["models"].size(), 1U);
}

TEST_F(ReportCli, AServedRunNeedsItsPort) {
  const auto taken = tools::ReportServer::start(0).value();
  const std::string url = taken->url();
  const std::string port = std::to_string(std::stoi(url.substr(url.rfind(':') + 1)));
  expect_refused({"tune", model_, "-o", "out", "--trials", "4", "--db", "a.db", "--serve", port},
                 "--serve " + port);
  EXPECT_FALSE(fs::exists(folder_.path() / "a.db"));
}

}  // namespace
}  // namespace tensorsmith::testing::report_cli_test
