// What the trees of our own latency model (learn/latency/tensorsmith_model.h) are fitted to.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "learn/gbt/pack_sum.h"
#include "learn/latency/tensorsmith_data.h"

namespace tensorsmith::learn {

// Some programs of one kind.
struct ChosenPrograms {
  const KindData& data;
  std::span<const size_t> chosen;  // numbers in data
};

struct TreeRows {
  PackSumData data;                // labels: log(seconds / base), less what the model's trees say of seconds
  std::vector<float> rank_labels;  // the same, less what they say of the order
};

// The programs as the model's trees see them. source: names the devices. The model has its factors, and trees where training
// goes on.
TreeRows tree_rows(const TensorsmithModel& model, feature::ProgramKind kind, const ChosenPrograms& programs,
                   const TrainingData& source);

// Programs of one device as the trees see them that speak for new devices: against the factors of all devices.
PackSumData device_tree_rows(const TensorsmithModel& model, feature::ProgramKind kind,
                             const ChosenPrograms& programs);

}  // namespace tensorsmith::learn
