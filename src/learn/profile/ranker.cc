#include "learn/profile/ranker.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "learn/gbt/forest_file.h"
#include "learn/gbt/pack_sum.h"
#include "learn/profile/mlp.h"

namespace tensorsmith::learn {
namespace {

constexpr size_t kValidationPart = 5;  // validation gets one of so many programs
constexpr const char* kTrees = "trees";

// Depth, gamma, least weight, learning rate and patience are those of the original.
PackSumOptions tree_options(uint64_t seed) {
  PackSumOptions options;
  options.max_depth = 10;
  options.gamma = 0.001;
  options.min_child_weight = 0;
  options.eta = 0.2;
  options.rounds = 500;
  options.early_stop = 50;
  options.max_bins = 0;
  options.seed = seed;
  return options;
}

class TreeRanker final : public Ranker {
 public:
  explicit TreeRanker(Forest forest) : forest_(std::move(forest)) {}
  std::vector<double> scores(const ProgramRows& rows) const override {
    std::vector<float> values(rows.begin.back());
    forest_.predict(rows.values, values);
    std::vector<double> out;
    for (size_t p = 0; p < rows.programs(); ++p) {
      double sum = 0;
      for (size_t r = rows.begin[p]; r < rows.begin[p + 1]; ++r) sum += values[r];
      out.push_back(sum);
    }
    return out;
  }
  void add_to(TensorFile& file) const override { add_forest(file, kTrees, forest_); }

 private:
  Forest forest_;
};

PackSumData pack_sum_data(const ProgramRows& rows, std::span<const double> labels, double mean) {
  PackSumData out;
  out.width = rows.width;
  out.column_name = [](size_t column) { return "column " + std::to_string(column); };
  for (size_t p = 0; p < rows.programs(); ++p) {
    const float* first = rows.values.data() + rows.begin[p] * rows.width;
    const float* last = rows.values.data() + rows.begin[p + 1] * rows.width;
    out.add({first, last}, static_cast<float>(labels[p] - mean), 1.0F);
  }
  return out;
}

}  // namespace

std::string_view to_string(FeatureSet features) {
  switch (features) {
    case FeatureSet::kPerStore:
      return "per-store";
    case FeatureSet::kSummary:
      return "summary";
    case FeatureSet::kProfile:
      return "profile";
  }
  return "";
}

std::string_view to_string(Learner learner) { return learner == Learner::kMlp ? "mlp" : "xgboost"; }

void ProgramRows::add(std::span<const float> rows) {
  values.insert(values.end(), rows.begin(), rows.end());
  begin.push_back(values.size() / width);
}

ProgramRows rows_of(const ProfiledPrograms& data, std::span<const size_t> programs, FeatureSet features) {
  ProgramRows out;
  for (const size_t i : programs) {
    const ProfiledProgram& program = data.programs[i];
    const std::vector<float>& rows = features == FeatureSet::kPerStore  ? program.per_store.values
                                     : features == FeatureSet::kSummary ? program.summary
                                                                        : program.profile;
    out.width = features == FeatureSet::kPerStore ? feature::kPerStoreColumns.size() : rows.size();
    out.add(rows);
  }
  return out;
}

std::vector<double> speeds_of(const ProfiledPrograms& data, std::span<const size_t> programs) {
  std::map<size_t, double> fastest;
  for (const size_t i : programs) {
    const ProfiledProgram& program = data.programs[i];
    const auto [at, added] = fastest.try_emplace(program.task, program.seconds);
    if (!added) at->second = std::min(at->second, program.seconds);
  }
  std::vector<double> out;
  for (const size_t i : programs)
    out.push_back(std::log(fastest[data.programs[i].task] / data.programs[i].seconds));
  return out;
}

std::vector<size_t> shuffled(std::vector<size_t> items, Rng& rng) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
  return items;
}

Result<std::unique_ptr<Ranker>> train_ranker(Learner learner, const ProgramRows& train,
                                             std::span<const double> labels, const ProgramRows& validation,
                                             std::span<const double> validation_labels, uint64_t seed) {
  if (learner == Learner::kMlp)
    return std::unique_ptr<Ranker>(std::make_unique<Mlp>(train, labels, validation, validation_labels, seed));
  double mean = 0;
  for (const double label : labels) mean += label / labels.size();
  PackSumOptions options = tree_options(seed);
  if (validation.programs() == 0) options.early_stop = 0;
  TS_ASSIGN_OR_RETURN(PackSumFit fit,
                      fit_pack_sum(pack_sum_data(train, labels, mean),
                                   pack_sum_data(validation, validation_labels, mean), options));
  return std::unique_ptr<Ranker>(std::make_unique<TreeRanker>(std::move(fit.forest)));
}

Result<std::unique_ptr<Ranker>> train_on_programs(const ProfiledPrograms& data,
                                                  std::span<const size_t> programs, FeatureSet features,
                                                  Learner learner, uint64_t seed) {
  Rng rng(seed);
  const std::vector<size_t> order = shuffled({programs.begin(), programs.end()}, rng);
  const size_t validating = order.size() / kValidationPart;
  const std::span<const size_t> validation(order.data(), validating);
  const std::span<const size_t> train(order.data() + validating, order.size() - validating);
  // Speeds are relative to the fastest of all programs, so that the labels of both parts are
  // comparable.
  const std::vector<double> labels = speeds_of(data, order);
  return train_ranker(learner, rows_of(data, train, features), std::span(labels).subspan(validating),
                      rows_of(data, validation, features), std::span(labels).first(validating), seed);
}

Result<std::unique_ptr<Ranker>> read_ranker(Learner learner, const TensorFile& file, size_t width) {
  if (learner == Learner::kMlp) {
    TS_ASSIGN_OR_RETURN(auto net, Mlp::read(file, width));
    return std::unique_ptr<Ranker>(std::move(net));
  }
  TS_ASSIGN_OR_RETURN(Forest forest, read_forest(file, kTrees, width));
  return std::unique_ptr<Ranker>(std::make_unique<TreeRanker>(std::move(forest)));
}

}  // namespace tensorsmith::learn
