// Models that rank programs by their relative speed, from rows of any features: boosted trees, or a small net.
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
  kPerStore,  // a row for each written buffer; a program's score is the sum of its rows' scores
  kSummary,   // learn::static_row
  kProfile,   // feature::cpu_profile_row
};
std::string_view to_string(FeatureSet features);  // "per-store", "summary", "profile"

// Rows of programs, one program after the other.
struct ProgramRows {
  size_t width = 0;
  std::vector<float> values;
  std::vector<size_t> begin = {0};  // by program: its first row; programs + 1

  size_t programs() const { return begin.size() - 1; }
  void add(std::span<const float> rows);
};
ProgramRows rows_of(const ProfiledPrograms& data, std::span<const size_t> programs, FeatureSet features);

// The logarithm of the fastest program's seconds over the program's, of each task: 0 for the fastest.
std::vector<double> speeds_of(const ProfiledPrograms& data, std::span<const size_t> programs);

// The items in an order that the generator draws.
std::vector<size_t> shuffled(std::vector<size_t> items, Rng& rng);

class Ranker {
 public:
  virtual ~Ranker() = default;
  // By program; higher is faster.
  virtual std::vector<double> scores(const ProgramRows& rows) const = 0;
  // All that scores() needs, statistics of the training part among it.
  virtual void add_to(TensorFile& file) const = 0;
};

enum class Learner : uint8_t { kXgboost, kMlp };
std::string_view to_string(Learner learner);  // "xgboost", "mlp"

// The validation part chooses the round or epoch that is kept; nothing else chooses anything. All statistics are those
// of the training part. On this thread alone: threads would mostly wait for each other, there are few programs.
Result<std::unique_ptr<Ranker>> train_ranker(Learner learner, const ProgramRows& train,
                                             std::span<const double> labels, const ProgramRows& validation,
                                             std::span<const double> validation_labels, uint64_t seed);
// A fifth of these programs, drawn by the seed, validates and the others train. Speeds are relative to the fastest of
// each task.
Result<std::unique_ptr<Ranker>> train_on_programs(const ProfiledPrograms& data,
                                                  std::span<const size_t> programs, FeatureSet features,
                                                  Learner learner, uint64_t seed);
// What add_to wrote, of rows of this width. kCorrupt where it is not there.
Result<std::unique_ptr<Ranker>> read_ranker(Learner learner, const TensorFile& file, size_t width);

}  // namespace tensorsmith::learn
