// Models that rank programs by relative speed, from rows of any features: boosted trees or a small
// neural network.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "learn/profile/profiled_programs.h"
#include "learn/tensor_file.h"

namespace tensorsmith::learn {

enum class FeatureSet : uint8_t {
  kPerStore,  // a row per written buffer; a program's score is the sum over its rows
  kSummary,   // learn::static_row
  kProfile,   // feature::cpu_profile_row
};
std::string_view to_string(FeatureSet features);  // "per-store", "summary", "profile"

// Rows of features of several programs, one program after the other.
struct ProgramRows {
  size_t width = 0;
  std::vector<float> values;
  std::vector<size_t> begin = {0};  // index of each program's first row; programs + 1 entries

  size_t programs() const { return begin.size() - 1; }
  void add(std::span<const float> rows);
};
ProgramRows rows_of(const ProfiledPrograms& data, std::span<const size_t> programs, FeatureSet features);

// Returns log(seconds of the fastest program of the task / seconds of the program); 0 for the
// fastest.
std::vector<double> speeds_of(const ProfiledPrograms& data, std::span<const size_t> programs);

// Returns the items in random order.
std::vector<size_t> shuffled(std::vector<size_t> items, Rng& rng);

class Ranker {
 public:
  virtual ~Ranker() = default;
  // Returns a score for each program; higher is faster.
  virtual std::vector<double> scores(const ProgramRows& rows) const = 0;
  // Writes everything that scores() needs, including the statistics of the training part.
  virtual void add_to(TensorFile& file) const = 0;
};

enum class Learner : uint8_t { kXgboost, kMlp };
std::string_view to_string(Learner learner);  // "xgboost", "mlp"

// Trains a ranker. The validation part is only used to select the round or epoch that is kept; all
// statistics come from the training part. Uses only the calling thread, since with so few programs
// threads would mostly wait for each other.
Result<std::unique_ptr<Ranker>> train_ranker(Learner learner, const ProgramRows& train,
                                             std::span<const double> labels, const ProgramRows& validation,
                                             std::span<const double> validation_labels, uint64_t seed);
// Trains on four fifths of these programs and validates on the others; the seed draws the parts.
// Speeds are relative to the fastest of these programs of each task.
Result<std::unique_ptr<Ranker>> train_on_programs(const ProfiledPrograms& data,
                                                  std::span<const size_t> programs, FeatureSet features,
                                                  Learner learner, uint64_t seed);
// Reads what add_to has written for rows of this width. kCorrupt if it is missing.
Result<std::unique_ptr<Ranker>> read_ranker(Learner learner, const TensorFile& file, size_t width);

}  // namespace tensorsmith::learn
