// What our own latency model is fitted to: summaries of measured programs, and the factors of their
// resources.
#pragma once

#include <array>
#include <map>
#include <span>
#include <vector>

#include "base/rng.h"
#include "learn/latency/queries.h"
#include "learn/latency/tensorsmith_model.h"

namespace tensorsmith::learn {

// Measured programs of one kind. Summaries in flat arrays: there may be millions of them.
struct KindData {
  int resources = 0, columns = 0;
  std::vector<float> values;  // by program: resources, columns
  std::vector<double> seconds, roofline;
  std::vector<uint32_t> workload, device;  // numbers in the store
  std::vector<uint8_t> structure;

  size_t size() const { return seconds.size(); }
  SummarizedProgram program(feature::ProgramKind kind, size_t i) const;
};
using AllData = std::array<KindData, feature::kProgramKinds>;

// Failed programs and those without leaves are left out.
Result<AllData> gather_summaries(const TrainingData& data, std::span<const int64_t> records);

// Tasks have between few and thousands of records: each record weighs 1 / sqrt(records of its task), so that
// a task's weight grows with its records, but slower. Mean 1.
std::vector<double> task_weights(const KindData& data, std::span<const size_t> chosen);

// Fold of each program, of 0 .. folds - 1: programs of a workload are in one, and the workloads of a
// structure go round the folds, so that no fold leaves out all that is known of a structure while others have
// it.
std::vector<int> fold_numbers(const KindData& data, int folds, uint64_t seed);

// By device number: the logarithm of what its seconds are of those that the model's factors predicted before,
// one a structure that was fitted and known.
using DeviceScales = std::map<uint32_t, std::vector<double>>;

// New factors for each structure and device among the chosen programs, in place of those that the model has.
// goes_on: the model's factors are a prior, the device's own or else the mean of the others' times its own
// scale, which weighs the more the fewer tasks there are.
DeviceScales fit_resources(TensorsmithModel& model, feature::ProgramKind kind, const KindData& data,
                           std::span<const size_t> chosen, const TrainingData& source, uint64_t seed,
                           bool goes_on);

// Factors of the structures that a device among the scales has not shown and others have: the mean of the
// others' times the device's median scale in this kind of programs, or else in all kinds.
void complete_resources(TensorsmithModel& model,
                        const std::array<DeviceScales, feature::kProgramKinds>& scales,
                        const TrainingData& source);

}  // namespace tensorsmith::learn
