// Measures the steps from Ansor's records to features on one core, in records per second.
//   bench_dataset RECORDS(.zst) WORKLOADS.json [every nth record]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "feature/per_store.h"
#include "record/ansor/workloads.h"
#include "record/line_reader.h"
#include "report.h"

using namespace tensorsmith;
using bench::report;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_dataset RECORDS WORKLOADS [EVERY]\n");
    return 2;
  }
  auto reader = record::LineReader::open(argv[1], size_t{1} << 24);
  const auto workloads = record::AnsorWorkloads::load(argv[2]);
  if (!reader.ok() || !workloads.ok()) {
    std::fprintf(stderr, "cannot read the records or the workloads\n");
    return 1;
  }
  const int64_t every = argc > 3 ? std::max(1L, std::strtol(argv[3], nullptr, 10)) : 20;
  std::vector<std::string> lines;
  record::LineReader::Line line;
  while (true) {
    const auto more = (*reader)->next(line);
    if (!more.ok() || !*more) break;
    if (line.number % every == 0) lines.push_back(line.text);
  }
  std::vector<record::AnsorRecord> records(lines.size());
  std::vector<sched::Schedule> schedules;
  size_t sink = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!record::parse_ansor_record(lines[i], records[i]).ok()) return 1;
    auto replayed = workloads->replay(records[i]);
    if (!replayed.ok()) return 1;
    schedules.push_back(std::move(replayed->schedule));
  }
  const size_t count = lines.size();
  std::printf("%zu records\n", count);
  report("parse", count, [&] {
    record::AnsorRecord record;
    for (const std::string& text : lines) sink += record::parse_ansor_record(text, record).ok() ? 1 : 0;
  });
  report("replay", count, [&] {
    for (const auto& record : records) sink += workloads->replay(record).ok() ? 1 : 0;
  });
  report("infer_bounds", count, [&] {
    for (const auto& schedule : schedules) sink += sched::infer_bounds(schedule).ok() ? 1 : 0;
  });
  report("features (with bounds)", count, [&] {
    for (const auto& schedule : schedules) sink += feature::extract_per_store(schedule, {}).ok() ? 1 : 0;
  });
  report("leaves (with bounds)", count, [&] {
    for (const auto& schedule : schedules) sink += feature::extract_leaves(schedule, {}).ok() ? 1 : 0;
  });
  report("record to features", count, [&] {
    record::AnsorRecord record;
    for (const std::string& text : lines) {
      if (!record::parse_ansor_record(text, record).ok()) continue;
      const auto replayed = workloads->replay(record);
      if (replayed.ok()) sink += feature::extract_per_store(replayed->schedule, {}).ok() ? 1 : 0;
    }
  });
  return sink > 0 ? 0 : 1;
}
