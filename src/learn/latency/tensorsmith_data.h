// Training data of Tensorsmith's own latency model: summaries of measured programs, and the fit of
// the factors of their resources.
#pragma once

#include <array>
#include <map>
#include <span>
#include <vector>

#include "base/rng.h"
#include "learn/latency/queries.h"
#include "learn/latency/tensorsmith_model.h"

namespace tensorsmith::learn {

// Measured programs of one kind. The summaries are in flat arrays because there may be millions of
// them.
struct KindData {
  int resources = 0, columns = 0;
  std::vector<float> values;  // per program: its resources, then its columns
  std::vector<double> seconds, roofline;
  std::vector<uint32_t> workload, device;  // numbers in the store
  std::vector<uint8_t> structure;

  size_t size() const { return seconds.size(); }
  SummarizedProgram program(feature::ProgramKind kind, size_t i) const;
};
using AllData = std::array<KindData, feature::kProgramKinds>;

// Summarizes the records. Failed programs and programs without leaves are left out.
Result<AllData> gather_summaries(const TrainingData& data, std::span<const int64_t> records);

// Returns a weight for each chosen record: 1 / sqrt(number of chosen records of its task), scaled
// to mean 1. Tasks have from a few up to thousands of records; so a task with more records weighs
// more, but less than in proportion.
std::vector<double> task_weights(const KindData& data, std::span<const size_t> chosen);

// Assigns each program a fold in [0, folds). All programs of a workload are in one fold. The
// workloads of a structure are dealt out to the folds in turn, so that no fold leaves out all
// workloads of a structure that has several.
std::vector<int> fold_numbers(const KindData& data, int folds, uint64_t seed);

// For each device number, one value per structure that was fitted and had factors before: the
// logarithm of measured seconds / seconds predicted by those earlier factors.
using DeviceScales = std::map<uint32_t, std::vector<double>>;

// Fits new factors for each structure and device among the chosen programs and replaces the model's
// factors of that structure and device. goes_on: the model's factors serve as a prior: those of the
// device, else those of all devices together (or their mean over devices), multiplied by the scale
// that fits the device. The fewer tasks there are, the more the prior weighs.
DeviceScales fit_resources(TensorsmithModel& model, feature::ProgramKind kind, const KindData& data,
                           std::span<const size_t> chosen, const TrainingData& source, uint64_t seed,
                           bool goes_on);

// Adds factors for structures that a device in `scales` has not shown but the model knows from
// other devices: the factors of all devices together (or their mean over devices), multiplied by
// the device's median scale within this kind of program, else within all kinds.
void complete_resources(TensorsmithModel& model,
                        const std::array<DeviceScales, feature::kProgramKinds>& scales,
                        const TrainingData& source);

}  // namespace tensorsmith::learn
