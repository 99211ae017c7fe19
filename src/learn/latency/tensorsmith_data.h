// Training data of Tensorsmith's own latency model: summaries of measured programs.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/enum_array.h"
#include "feature/program_summary.h"
#include "learn/training.h"

namespace tensorsmith::learn {

template <class T>
using ByProgramKind = EnumArray<feature::ProgramKind, T, feature::kProgramKinds>;
inline constexpr auto kAllProgramKinds = enum_values<feature::ProgramKind, feature::kProgramKinds>();
inline constexpr auto kAllStructures =
    enum_values<feature::WorkloadStructure, feature::kWorkloadStructures>();

// Measured programs of one kind. The summaries are in flat arrays because there may be millions of
// them.
struct KindData {
  feature::ProgramKind kind{};
  size_t resources = 0, columns = 0;
  std::vector<float> values;  // per program: its resources, then its columns
  std::vector<double> seconds, roofline;
  std::vector<double> trust;               // record::trust of the measurement
  std::vector<uint32_t> workload, device;  // numbers in the store
  std::vector<feature::WorkloadStructure> structure;

  size_t size() const { return seconds.size(); }
  const float* row(size_t i) const { return values.data() + i * (resources + columns); }
  feature::ProgramSummary program(size_t i) const;
  std::vector<feature::ProgramSummary> programs(std::span<const size_t> chosen) const;
};
using AllData = ByProgramKind<KindData>;

// A selection of programs of one kind.
struct ChosenPrograms {
  const KindData& data;
  std::span<const size_t> chosen;  // indices in data
};

// Summarizes the records. Failed programs and programs without leaves are left out.
Result<AllData> gather_summaries(const TrainingData& data, std::span<const int64_t> records);

// Returns the numbers of all programs: 0 to data.size() - 1.
std::vector<size_t> all_programs(const KindData& data);
// Returns the chosen programs by device number.
std::map<uint32_t, std::vector<size_t>> by_device(const ChosenPrograms& programs);

// Returns a weight for each chosen record: its trust / sqrt(number of chosen records of its task), scaled
// to mean 1. Tasks have from a few up to thousands of records; so a task with more records weighs
// more, but less than in proportion.
std::vector<double> task_weights(const ChosenPrograms& programs);

// Assigns each program a fold in [0, folds). All programs of a workload are in one fold. The
// workloads of a structure are dealt out to the folds in turn, so that no fold leaves out all
// workloads of a structure that has several.
std::vector<int> fold_numbers(const KindData& data, int folds, uint64_t seed);

}  // namespace tensorsmith::learn
