// Support of the record tests: temporary folders and arbitrary records.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/rng.h"
#include "record/database.h"

namespace tensorsmith::record::testing {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "record_test_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}
inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline Record make_record(int number, const std::string& task = "task0", double seconds = 1e-3) {
  Record record;
  record.task_key = task;
  record.device_key = "device0";
  record.settings = {2, true};
  record.trace = "split stage=3 iter=0 lengths=[" + std::to_string(number + 1) + "]\n";
  record.result.seconds = {seconds, seconds * 1.5, seconds * 0.5};
  record.result.runs_per_repeat = 7;
  record.result.build_seconds = 0.1;
  record.result.measure_seconds = 0.2 + number;
  record.unix_ms = 1700000000000 + number;
  record.candidate = {Reason::kPredicted, "evolutionary", DesignPoint{number % 5, {1, number, -3}}, ""};
  return record;
}

inline Record random_record(Rng& rng) {
  Record record = make_record(static_cast<int>(rng.below(1000000)), "task" + std::to_string(rng.below(3)));
  record.settings = {static_cast<int>(1 + rng.below(4)), rng.bernoulli(0.5)};
  record.result.outcome = static_cast<Outcome>(rng.below(9));
  if (!record.result.ok()) record.result.reason = "signal 11\nat \"x\" \xc3\xa9";
  record.result.seconds.clear();
  const size_t repeats = record.result.ok() ? 1 + rng.below(10) : rng.below(2);
  for (size_t i = 0; i < repeats; ++i) record.result.seconds.push_back(1e-6 + rng.uniform());
  record.result.stopped_early = rng.bernoulli(0.3);
  record.result.build_seconds = rng.uniform();
  if (rng.bernoulli(0.5)) record.result.disturbance = rng.bernoulli(0.2) ? 0 : rng.uniform();
  record.code_version = kCodeVersion + static_cast<int>(rng.below(2));
  record.candidate = {};
  record.candidate.reason = static_cast<Reason>(rng.below(9));
  if (rng.bernoulli(0.5)) record.candidate.strategy = "annealing";
  if (rng.bernoulli(0.5)) record.candidate.note = "import:\\x";
  if (rng.bernoulli(0.7)) {
    auto& point = record.candidate.point.emplace();
    point.sketch = static_cast<int>(rng.below(5));
    for (uint64_t i = rng.below(4); i > 0; --i) point.decisions.push_back(static_cast<int64_t>(rng.next()));
  }
  return record;
}

inline bool same(const Record& a, const Record& b) {
  return a.key() == b.key() && a.task_key == b.task_key && a.device_key == b.device_key &&
         a.settings == b.settings && a.trace == b.trace && a.result.outcome == b.result.outcome &&
         a.result.reason == b.result.reason && a.result.seconds == b.result.seconds &&
         a.result.runs_per_repeat == b.result.runs_per_repeat &&
         a.result.stopped_early == b.result.stopped_early &&
         a.result.build_seconds == b.result.build_seconds &&
         a.result.measure_seconds == b.result.measure_seconds &&
         a.result.disturbance == b.result.disturbance && a.unix_ms == b.unix_ms &&
         a.code_version == b.code_version && a.candidate == b.candidate;
}

}  // namespace tensorsmith::record::testing
