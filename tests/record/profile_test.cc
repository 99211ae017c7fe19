// Profiles in databases and their exports, and counters of Nsight Compute.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "record/database.h"
#include "record/jsonl.h"
#include "record/ncu_csv.h"

namespace tensorsmith::record::profile_test {
namespace {

Record some_record(int number) {
  Record record;
  record.task_key = "task";
  record.device_key = "device";
  record.trace = "trace " + std::to_string(number);
  record.result.seconds = {0.001 * number};
  return record;
}

class ProfileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const {
    return ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
           std::to_string(::getpid()) + name;
  }
  std::vector<Profile> profiles(Database& database, const std::string& profiler) const {
    std::vector<Profile> out;
    EXPECT_TRUE(database
                    .for_each_profile(profiler,
                                      [&](const Profile& profile) -> Status {
                                        out.push_back(profile);
                                        return {};
                                      })
                    .ok());
    return out;
  }
};

TEST_F(ProfileTest, AreKeptByRecordAndProfiler) {
  auto database = Database::open(":memory:");
  ASSERT_TRUE(database.ok());
  const std::string key = some_record(1).key();
  EXPECT_TRUE(profiles(**database, "a").empty());
  EXPECT_FALSE((*database)->add(std::vector<Profile>{{key, "a", {{"x", 1}}}}).ok())
      << "of a record that is not there";
  ASSERT_TRUE((*database)->add(std::vector<Record>{some_record(1), some_record(2)}).ok());
  ASSERT_TRUE((*database)
                  ->add(std::vector<Profile>{{key, "a", {{"x", 0.1}, {"y", 1e300}}}, {key, "b", {{"x", 2}}}})
                  .ok());
  ASSERT_TRUE((*database)->add(std::vector<Profile>{{key, "b", {{"z", 3}}}}).ok());
  ASSERT_EQ(profiles(**database, "a").size(), 1U);
  EXPECT_EQ(profiles(**database, "a")[0].counters, (std::map<std::string, double>{{"x", 0.1}, {"y", 1e300}}));
  EXPECT_EQ(profiles(**database, "b")[0].counters, (std::map<std::string, double>{{"z", 3}}));
  for (const Profile& bad : {Profile{"", "a", {}}, Profile{key, "", {}}, Profile{key, "a", {{"", 1}}},
                             Profile{key, "a", {{"x", std::numeric_limits<double>::infinity()}}}})
    EXPECT_FALSE((*database)->add(std::vector<Profile>{bad}).ok());
}

TEST_F(ProfileTest, GoWithTheirRecordsThroughAnExport) {
  {
    auto database = Database::open(path(".db"));
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)->add(std::vector<Record>{some_record(1), some_record(2)}).ok());
    ASSERT_TRUE((*database)->add(std::vector<Profile>{{some_record(2).key(), "a", {{"x", 0.25}}}}).ok());
    ASSERT_TRUE((*database)->export_jsonl(path(".jsonl")).ok());
  }
  auto again = Database::open_read_only(path(".db"));
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(profiles(**again, "a").size(), 1U);
  EXPECT_TRUE((*again)->check_integrity().ok());
  auto other = Database::open(path("_other.db"));
  ASSERT_TRUE(other.ok());
  for (const int64_t expected : {1, 0}) {
    const auto report = (*other)->import_jsonl(path(".jsonl"));
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->profiles, expected);
    EXPECT_EQ(report->corrupt, 0);
  }
  ASSERT_EQ(profiles(**other, "a").size(), 1U);
  EXPECT_EQ(profiles(**other, "a")[0].record_key, some_record(2).key());
  for (const char* name : {".db", ".jsonl", "_other.db"}) std::filesystem::remove(path(name));
}

TEST_F(ProfileTest, LinesThatAreWrongAreRefused) {
  EXPECT_TRUE(
      parse_json_line(R"({"type":"profile","v":3,"record":"k","profiler":"a","counters":{"x":1}})").ok());
  for (const char* line : {R"({"type":"profile","v":3,"profiler":"a","counters":{"x":1}})",
                           R"({"type":"profile","v":3,"record":"","profiler":"a","counters":{"x":1}})",
                           R"({"type":"profile","v":3,"record":"k","profiler":"a","counters":[1]})",
                           R"({"type":"profile","v":3,"record":"k","profiler":"a","counters":{"x":"1"}})",
                           R"({"type":"profile","v":3,"record":"k","profiler":"a"})",
                           R"({"type":"profile","v":4,"record":"k","profiler":"a","counters":{"x":1}})"})
    EXPECT_FALSE(parse_json_line(line).ok()) << line;
}

constexpr const char* kCsv =
    "==PROF== Connected to process 17\n"
    "\"ID\",\"Process ID\",\"Kernel Name\",\"Grid Size\",\"dram__bytes_read.sum\",\"gpu__time_duration.sum\","
    "\"sm__throughput.avg.pct_of_peak_sustained_elapsed\",\"launch__occupancy_limit_warps\"\n"
    "\"\",\"\",\"\",\"\",\"Mbyte\",\"usecond\",\"%\",\"block\"\n"
    "\"0\",\"17\",\"first(float*, int)\",\"(64, 1, 1)\",\"1,234.5\",\"10\",\"50\",\"16\"\n"
    "\"1\",\"17\",\"a \"\"second\"\" one\",\"(8, 1, 1)\",\"1\",\"30\",\"90\",\"n/a\"\r\n";

TEST(NcuCsv, MetricsInBaseUnits) {
  const auto launches = parse_ncu_csv(kCsv);
  ASSERT_TRUE(launches.ok()) << launches.error().message();
  ASSERT_EQ(launches->size(), 2U);
  EXPECT_EQ((*launches)[0].kernel, "first(float*, int)");
  EXPECT_EQ((*launches)[1].kernel, "a \"second\" one");
  const auto& first = (*launches)[0].metrics;
  EXPECT_DOUBLE_EQ(first.at("dram__bytes_read.sum"), 1234.5e6);
  EXPECT_DOUBLE_EQ(first.at("gpu__time_duration.sum"), 10e-6);
  EXPECT_EQ(first.at("launch__occupancy_limit_warps"), 16);
  EXPECT_EQ(first.size(), 4U);
  EXPECT_EQ((*launches)[1].metrics.count("launch__occupancy_limit_warps"), 0U);
  const auto merged = merge_launches(*launches);
  EXPECT_DOUBLE_EQ(merged.at("dram__bytes_read.sum"), 1235.5e6);
  EXPECT_DOUBLE_EQ(merged.at("sm__throughput.avg.pct_of_peak_sustained_elapsed"), (10 * 50 + 30 * 90) / 40.0);
  EXPECT_EQ(merged.at("launch__occupancy_limit_warps"), 16);
}

TEST(NcuCsv, WhatIsWrongIsNamedByItsLine) {
  const std::string header = "\"ID\",\"Kernel Name\",\"a__b.sum\"\n";
  const auto reason = [](const std::string& text) {
    const auto parsed = parse_ncu_csv(text);
    return parsed.ok() ? "ok" : parsed.error().message();
  };
  EXPECT_EQ(reason(header), "ok");
  EXPECT_NE(reason("").find("no header"), std::string::npos);
  EXPECT_NE(reason("a,b\n1,2\n").find("no header"), std::string::npos);
  EXPECT_NE(reason(header + "1,k\n").find("line 2: has 2 cells, but the header has 3"), std::string::npos);
  EXPECT_NE(reason(header + "1,\"k,3\n").find("line 2: a quoted cell does not end"), std::string::npos);
  EXPECT_NE(reason(header + "1,\"k\"x,3\n").find("line 2: text follows"), std::string::npos);
  EXPECT_NE(reason(header + "1,k,text\n").find("line 2: kernel 'k' has no metric"), std::string::npos);
  EXPECT_NE(reason("\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Value\"\n").find("--page raw"),
            std::string::npos);
}

// Every prefix of a correct file, and every file with one byte changed, is read or refused.
TEST(NcuCsv, DamageIsNoCrash) {
  const std::string csv = kCsv;
  for (size_t n = 0; n < csv.size(); ++n) {
    (void)parse_ncu_csv(csv.substr(0, n));
    for (const char c : {'"', ',', '\n', '\0'}) {
      std::string changed = csv;
      changed[n] = c;
      (void)parse_ncu_csv(changed);
    }
  }
}

}  // namespace
}  // namespace tensorsmith::record::profile_test
