// The correction of Tensorsmith's own latency model (learn/latency/tensorsmith_model.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "learn/gbt/forest.h"
#include "learn/latency/tensorsmith_rows.h"
#include "learn/tensor_file.h"

namespace tensorsmith::learn {

inline constexpr double kLeastResourceShare = 1e-6;

struct TreeRows {
  PackSumData data;                // labels: log(seconds / base) minus the existing trees' prediction
  std::vector<float> rank_labels;  // likewise, minus their prediction to rank by
};

// Adds to log base what boosted trees, trained on all devices together, have learned of the error
// of the base on programs of one kind.
//
// The members minimize the mean percentage error, by which a program that is ten times slower than
// predicted counts as wrong by 90 %, no more. The rank members use Huber's loss, which penalizes
// such programs more. Programs are ranked by a mixture of both, so that programs that may spill
// registers do not reach the first places (docs/decisions/015-latency-model.md).
struct TensorsmithCorrection {
  RowColumns columns{.least_share = kLeastResourceShare, .of_device = true};
  double rank_weight = 0;  // of the rank members, in [0, 1]; used if there are members of both sorts
  std::vector<Forest> members, rank_members;

  bool empty() const { return members.empty() && rank_members.empty(); }
  // Adds to `out` the mean of the members for each row. If not empty, disagreement receives
  // Prediction::disagreement, and the term to rank by is added to ranks.
  void add(std::span<const float> rows, std::span<double> out, std::span<double> disagreement,
           std::span<double> ranks) const;
  // Returns the rows that further trees are fitted to.
  TreeRows training_rows(const TensorsmithBase& base, const ChosenPrograms& programs,
                         const TrainingData& source) const;

  // Adds the entries of the file's description and the trees' tensors.
  void write(TensorFile& file, feature::ProgramKind kind, nlohmann::json& item) const;
  // Throws JSON exceptions.
  Status read(const TensorFile& file, feature::ProgramKind kind, const nlohmann::json& item);
};

}  // namespace tensorsmith::learn
