// The page: its data are those of the report and are never interpreted as markup or code.
#include "tools/report_page.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli_support.h"
#include "tools/command_line.h"

namespace tensorsmith::tools::report_page_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile[] = {
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "\"'&<>",
    "\xff\xfe not UTF-8",
    "\u2028\u2029",
    "@DATA@ @JS@",
    "${7*7}",
    "\\u003c",
};

engine::Report hostile_report(const std::string& text) {
  engine::Report report;
  report.title = text;
  engine::ReportSetup& setup = report.setups.emplace_back();
  setup.device_key = text;
  engine::ReportTask& task = report.tasks.emplace_back();
  task.name = task.key = task.strategy = task.loops = task.no_loops_because = text;
  task.records.push_back({0, 1e-3, record::Outcome::kOk, record::Reason::kDefault, true, text});
  task.best = 0;
  task.untuned_seconds = task.best_seconds = 1e-3;
  task.failures.push_back({record::Outcome::kCrash, text, 1});
  report.best_so_far.push_back({{0, 1e-3}});
  engine::ReportModel& model = report.models.emplace_back();
  model.name = model.directory = model.device = model.tool_version = model.not_run_because = text;
  model.kernels.push_back({text, 0, 0, 1e-3, 1, 1});
  report.peers.push_back({text, text, 1, 1, 1, 1, 1, 1});
  report.notes = {text};
  report.settings = {{text, text}};
  report.predictor = text;
  return report;
}

// Returns the text between the known beginning and end of the data element.
std::string data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

size_t count(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(ReportPage, HostileNamesStayData) {
  const std::string plain = report_page(report_json(hostile_report("plain")));
  for (const std::string text : kHostile) {
    SCOPED_TRACE(text);
    const nlohmann::json json = report_json(hostile_report(text));
    const std::string page = report_page(json);
    const std::string data = data_of(page);
    EXPECT_THAT(data, Not(HasSubstr("<")));
    EXPECT_THAT(data, Not(HasSubstr("&")));
    const auto read = nlohmann::json::parse(data);
    if (text.find('\xff') == std::string::npos) {
      EXPECT_EQ(read, json);
      EXPECT_EQ(read["tasks"][0]["loops"], text);
    }
    for (const char* tag : {"<script", "</script", "<!--", "<style", "<link", "<meta"})
      EXPECT_EQ(count(page, tag), count(plain, tag)) << tag;
  }
}

TEST(ReportPage, AsksNothingOfAnyNetwork) {
  const std::string page = report_page(report_json(hostile_report("plain")));
  EXPECT_THAT(page, HasSubstr("connect-src 'none'"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  // No element loads anything by its address.
  const std::regex loads(R"(<(script|img|link|iframe|video|object|embed)[^>]*\s(src|href|data)="(?!data:))");
  EXPECT_FALSE(std::regex_search(page.substr(0, page.find("<script>")), loads));
  const std::string live =
      report_page(report_json(hostile_report("plain"), {true, "measuring", "data.json?token=1", ""}));
  EXPECT_THAT(live, HasSubstr("connect-src 'self'"));
}

// The page tells the disturbance of a task's best time if it makes that time doubtful.
TEST(ReportPage, DoubtfulTimesAreMarked) {
  engine::Report report = hostile_report("plain");
  auto& disturbance = report.tasks[0].records[0].disturbance;
  const auto shown = [&] { return report_json(report)["tasks"][0]["disturbance"]; };
  EXPECT_EQ(shown(), nullptr);
  disturbance = 0.02;
  EXPECT_EQ(shown(), nullptr);
  disturbance = 0.25;
  EXPECT_EQ(shown(), 0.25);
  report.tasks[0].best.reset();
  EXPECT_EQ(shown(), nullptr);
}

TEST(ReportPage, ColumnsHoldEachRecordOnce) {
  engine::Report report;
  report.setups.emplace_back();
  engine::ReportTask& task = report.tasks.emplace_back();
  using record::Outcome;
  using record::Reason;
  task.records = {{0, 2e-3, Outcome::kOk, Reason::kDefault, true, ""},
                  {1, engine::kUnknownSeconds, Outcome::kCrash, Reason::kRandom, true, ""},
                  {2, 1e-9, Outcome::kOk, Reason::kRandom, false, ""}};
  const nlohmann::json json = report_json(report);
  const auto& records = json["tasks"][0]["records"];
  EXPECT_EQ(records["at"], nlohmann::json({0.0, 1.0, 2.0}));
  EXPECT_EQ(records["seconds"], nlohmann::json({2e-3, nullptr, 1e-9}));
  EXPECT_EQ(records["implausible"], nlohmann::json({2}));
  EXPECT_EQ(json["outcomes"], nlohmann::json({"ok", "crash"}));
  EXPECT_EQ(records["outcome"], nlohmann::json({0, 1, 0}));
  EXPECT_EQ(json["reasons"][records["reason"][2].get<size_t>()], "random");
  EXPECT_TRUE(json["tasks"][0]["best_seconds"].is_null());
}

TEST(ReportPage, IsReadAgainAsItWasWritten) {
  const testing::TemporaryDirectory folder;
  const auto write = [&](const std::string& text) {
    std::ofstream(folder.file("a.html"), std::ios::binary) << text;
    return folder.file("a.html");
  };
  for (const char* text : kHostile) {
    if (std::string(text).find('\xff') != std::string::npos) continue;
    SCOPED_TRACE(text);
    nlohmann::json json = report_json(hostile_report(text));
    nlohmann::json with = json;
    with["beside"] = json;
    with["live"] = {{"running", false}};
    const std::string path = write(report_page(with));
    EXPECT_TRUE(is_report_page(path));
    const auto read = read_report_page(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(*read, json);
  }
}

TEST(ReportPage, DamagedPagesAreNamed) {
  const testing::TemporaryDirectory folder;
  const std::string page = report_page(report_json(hostile_report("plain")));
  const auto read = [&](const std::string& text) {
    std::ofstream(folder.file("a.html"), std::ios::binary) << text;
    return read_report_page(folder.file("a.html"));
  };
  const size_t at = page.find("id=\"data\">") + 10;
  EXPECT_EQ(read(page.substr(0, at + 5)).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(read(std::string(page).insert(at, "[")).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(read(std::string(page).replace(page.find("\"version\":"), 11, "\"version\":9")).error().code,
            ErrorCode::kUnsupported);
  EXPECT_THAT(
      read(std::string(page).replace(page.find("\"tasks\":[{\"best\""), 7, "\"other\"")).error().message(),
      HasSubstr("'tasks'"));
  EXPECT_EQ(read_report_page(folder.file("none.html")).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(is_report_page(folder.file("none.html")));
  std::ofstream(folder.file("b.html")) << "<html>another page</html>";
  EXPECT_FALSE(is_report_page(folder.file("b.html")));
}

TEST(ReportPage, ImportanceAndProgressArePartOfTheData) {
  engine::Report report = hostile_report("plain");
  EXPECT_TRUE(report_json(report)["tasks"][0]["importance"].is_null());
  report.tasks[0].importance =
      engine::ReportImportance{40, {{"conv.tile.oc 2/3", "tile", 0.5, 0.1, {{16, 12, 1e-3, 2e-3}}}}};
  ReportLive live{true, "measuring", "data.json?token=1", "", "measuring schedules", 12.5};
  nlohmann::json json = report_json(report, live);
  const auto& importance = json["tasks"][0]["importance"];
  EXPECT_EQ(importance["programs"], 40);
  EXPECT_EQ(importance["decisions"][0]["share"], 0.5);
  EXPECT_EQ(importance["decisions"][0]["values"], nlohmann::json({{16, 12, 1e-3, 2e-3}}));
  EXPECT_EQ(json["live"]["elapsed_seconds"], 12.5);
  EXPECT_TRUE(json["live"]["left_seconds"].is_null());
  live.left_seconds = 47;
  EXPECT_EQ(report_json(report, live)["live"]["left_seconds"], 47);
}

TEST(ReportPage, NamesTheLibraryAndItsLicence) {
  const std::string page = report_page(report_json({}));
  EXPECT_THAT(page, HasSubstr("Chart.js v"));
  EXPECT_THAT(page, HasSubstr("Permission is hereby granted, free of charge"));
}

TEST(CommandLine, WordsAreReadBackByAShell) {
  EXPECT_EQ(shell_word("model.onnx"), "model.onnx");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my model"), "'my model'");
  EXPECT_EQ(shell_word("it's $HOME"), R"('it'\''s $HOME')");
  EXPECT_THAT(command_line(), HasSubstr("tools_tests"));
}

TEST(CommandLine, HasNoPasswords) {
  using std::string_literals::operator""s;
  const std::string line = command_line(
      "/usr/bin/tensorsmith\0tune\0--db=postgresql://me:s3cret@host/team\0--from\0postgres://me:s3cret@host/x\0"s);
  EXPECT_THAT(line, ::testing::Not(HasSubstr("s3cret")));
  EXPECT_THAT(line, ::testing::StartsWith("tensorsmith tune --db="));
  EXPECT_THAT(line, HasSubstr("host/team"));
  EXPECT_THAT(line, HasSubstr("host/x"));
}

}  // namespace
}  // namespace tensorsmith::tools::report_page_test
