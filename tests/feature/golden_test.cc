// Features of measured Ansor records of four devices, replayed by our steps, against those that TVM v0.16
// extracted.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "feature/per_store.h"
#include "record/ansor/ansor_record.h"
#include "record/ansor/dag.h"
#include "record/line_reader.h"

namespace tensorsmith::feature {
namespace {

using Json = nlohmann::json;
using Row = std::vector<double>;

const std::string kData = TENSORSMITH_SOURCE_DIR "/../shared/data/ansor/";

// slog spreads values over 0..40; a relative difference of 1e-3, and what rounding to 5 digits leaves of
// small ones.
bool differs(double ours, double golden) {
  return std::abs(ours - golden) > 1e-3 * std::max(std::abs(golden), 0.05);
}

// Columns that disagree. Among buffers of equal lines and bytes TVM's order is that of a hash map of
// pointers, so any order of such buffers is right: the best counts.
std::vector<int> disagreement(const Row& ours, const Row& golden) {
  std::vector<int> columns;
  for (int c = 0; c < kPerStoreWidth; ++c) {
    if ((c < 57 || c >= 147) && differs(ours[static_cast<size_t>(c)], golden[static_cast<size_t>(c)]))
      columns.push_back(c);
  }
  const auto key = [&](int b) {  // bytes, lines
    const auto first = static_cast<size_t>(57 + 18 * b);
    return std::pair(ours[first + 3], ours[first + 5]);
  };
  std::vector<int> order = {0, 1, 2, 3, 4}, best;
  size_t fewest = SIZE_MAX;
  do {
    std::vector<int> wrong;
    bool legal = true;
    for (int b = 0; b < 5 && legal; ++b) {
      const int mine = order[static_cast<size_t>(b)];
      legal = key(mine) == key(b);
      for (int c = 0; c < 18; ++c) {
        if (differs(ours[static_cast<size_t>(57 + 18 * mine + c)],
                    golden[static_cast<size_t>(57 + 18 * b + c)]))
          wrong.push_back(57 + 18 * b + c);
      }
    }
    if (legal && wrong.size() < fewest) fewest = wrong.size(), best = wrong;
  } while (std::next_permutation(order.begin(), order.end()));
  columns.insert(columns.end(), best.begin(), best.end());
  return columns;
}

struct Tally {
  int64_t records = 0, refused = 0, exact = 0, in_order = 0, values = 0, wrong = 0;
  std::map<std::string, int64_t> by_column;
};

TEST(GoldenFeatures, RecordsOfFourDevicesAgreeWithTvm) {
  std::ifstream file(kData + "workloads.json");
  auto reader = record::LineReader::open(kData + "features.golden.jsonl.zst", size_t{1} << 24);
  if (!file || !reader.ok()) GTEST_SKIP() << "no records of others at " << kData;
  const Json workloads = Json::parse(file);
  const char* verbose = std::getenv("TENSORSMITH_VERBOSE");
  const int64_t to_show = verbose != nullptr ? std::atoi(verbose) : 0;
  int64_t shown = 0;
  std::map<std::string, Tally> tallies;
  record::LineReader::Line line;
  while (*(*reader)->next(line)) {
    const Json json = Json::parse(line.text);
    record::AnsorRecord record;
    const auto parsed = record::parse_ansor_record(json["record"].dump(), record);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message();
    const auto workload = record::parse_dag(workloads[record.workload_key]["compute_dag"].get<std::string>(),
                                            record.workload_key);
    ASSERT_TRUE(workload.ok()) << workload.error().message();
    const auto schedule = record::replay(sched::Schedule::create(*workload), record);
    ASSERT_TRUE(schedule.ok()) << record.workload_key << ": " << schedule.error().message();
    PerStoreOptions options;
    options.cacheline_bytes = static_cast<int>(record.cacheline_bytes);
    const auto features = extract_per_store(*schedule, options);
    ASSERT_TRUE(features.ok()) << features.error().message();
    const auto golden = json["features"].get<std::vector<Row>>();
    Tally& tally = tallies[json["device"]];
    // TVM v0.16 gives one row of zeros to a program that its check of GPU code refuses (vectors of more than
    // 16 bytes), although it was built and measured. That is no feature of the program; ours are those of its
    // loops.
    if (golden.size() == 1 && std::count(golden[0].begin(), golden[0].end(), 0.0) == kPerStoreWidth) {
      ++tally.refused;
      EXPECT_GT(features->rows, 0);
      continue;
    }
    ASSERT_EQ(features->rows, static_cast<int>(golden.size())) << record.workload_key;
    ++tally.records;
    std::string report;
    // TVM keeps its rows in a hash map of pointers. Usually it gives the last inserted first, but not always:
    // each of our rows goes with the row it resembles most.
    std::vector<char> used(golden.size(), 0);
    bool in_order = true;
    for (int r = 0; r < features->rows; ++r) {
      const auto span = features->row(r);
      const Row ours(span.begin(), span.end());
      size_t best = 0, fewest = SIZE_MAX;
      for (size_t g = golden.size(); g-- > 0;) {
        if (used[g] != 0) continue;
        const size_t count = disagreement(ours, golden[g]).size();
        if (count < fewest) fewest = count, best = g;
      }
      used[best] = 1;
      in_order = in_order && best == golden.size() - 1 - static_cast<size_t>(r);
      const Row& theirs = golden[best];
      for (int c : disagreement(ours, theirs)) {
        ++tally.by_column[per_store_column_name(c)];
        ++tally.wrong;
        report += "  row " + std::to_string(r) + " " + per_store_column_name(c) + " ours " +
                  std::to_string(ours[static_cast<size_t>(c)]) + " TVM " +
                  std::to_string(theirs[static_cast<size_t>(c)]) + "\n";
      }
      tally.values += kPerStoreWidth;
    }
    tally.in_order += in_order ? 1 : 0;
    tally.exact += report.empty() ? 1 : 0;
    if (!report.empty() && shown++ < to_show) {
      std::cout << json["device"] << " " << record.workload_key << "\n"
                << json["record"]["i"][1][1].dump() << "\n"
                << sched::to_string(*schedule) << report;
    }
  }
  ASSERT_EQ(tallies.size(), 4u);
  for (const auto& [device, tally] : tallies) {
    std::cout << device << ": " << tally.records << " records, all numbers equal in " << tally.exact << "; "
              << tally.wrong << " of " << tally.values << " values differ; " << tally.in_order
              << " have their rows in reverse order; " << tally.refused << " more were refused by TVM\n";
    if (to_show > 0) {
      for (const auto& [name, count] : tally.by_column) std::cout << "  " << name << " " << count << "\n";
    }
    EXPECT_LE(tally.wrong * 50, tally.values) << device;
  }
}

}  // namespace
}  // namespace tensorsmith::feature
