// The rows and labels that the trees of Tensorsmith's own latency model
// (learn/latency/tensorsmith_model.h) are fitted to.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "learn/gbt/pack_sum.h"
#include "learn/latency/tensorsmith_data.h"

namespace tensorsmith::learn {

// A selection of programs of one kind.
struct ChosenPrograms {
  const KindData& data;
  std::span<const size_t> chosen;  // indices in data
};

struct TreeRows {
  PackSumData data;                // labels: log(seconds / base) minus the existing trees' prediction
  std::vector<float> rank_labels;  // likewise, minus their prediction to rank by
};

// Builds the rows of the programs. source: names the devices. The model must already have its
// factors, and its trees if training continues.
TreeRows tree_rows(const TensorsmithModel& model, feature::ProgramKind kind, const ChosenPrograms& programs,
                   const TrainingData& source);

// Builds rows for the forests that predict new devices, from programs of one device. Their base
// uses the factors of all devices together.
PackSumData device_tree_rows(const TensorsmithModel& model, feature::ProgramKind kind,
                             const ChosenPrograms& programs);

}  // namespace tensorsmith::learn
