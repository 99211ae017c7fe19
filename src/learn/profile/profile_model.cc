#include "learn/profile/profile_model.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/json_text.h"
#include "feature/profile_schema_gpu.h"
#include "learn/latency/kinds.h"

namespace tensorsmith::learn {
namespace {

using Json = nlohmann::json;

constexpr const char* kProfileKind = "profile";
constexpr const char* kReads = "profile.json";  // describes the columns of the rows

template <class Columns>
Json names_of(const Columns& columns) {
  Json out = Json::array();
  for (const auto& column : columns) out.push_back(column.name());
  return out;
}

// Returns the names of the columns, which depend on whether the profiles are of a CPU or a GPU.
Json columns_of(size_t width) {
  return width == feature::kCpuProfileColumns.size() ? names_of(feature::kCpuProfileColumns)
                                                     : names_of(feature::kGpuProfileColumns);
}

class ProfileModel final : public CostModel {
 public:
  ModelCard model_card;
  Learner learner = Learner::kXgboost;
  size_t width = 0;
  std::unique_ptr<Ranker> ranker;

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    ProgramRows rows;
    rows.width = width;
    for (const ProgramQuery& query : queries) {
      if (query.profile == nullptr)
        return Error{ErrorCode::kInvalidArgument, "model 'profile'",
                     "needs a profile of each program, but a program has none"};
      if (query.profile->size() != width)
        return Error{ErrorCode::kMismatch, "model 'profile'",
                     "was trained on the counters of a different kind of device"};
      rows.add(*query.profile);
    }
    std::vector<Prediction> out;
    for (const double score : ranker->scores(rows)) out.push_back({.seconds = std::exp(-score)});
    return out;
  }
  ModelInputs inputs() const override { return {.profile = true}; }
  bool ranks_only() const override { return true; }
  const ModelCard& card() const override { return model_card; }

  Status save(const std::string& path) const override {
    ModelFile file;
    file.card = model_card;
    const std::string reads = Json{
        {"version", feature::kProfileVersion},
        {"learner", to_string(learner)},
        {"columns",
         columns_of(width)}}.dump();
    file.add<uint8_t>(kReads, {std::ssize(reads)},
                      {reinterpret_cast<const uint8_t*>(reads.data()), reads.size()});
    ranker->add_to(file);
    return write_model_file(file, path);
  }
};

Result<std::unique_ptr<CostModel>> read_profile_model(ModelFile file) {
  TS_ASSIGN_OR_RETURN(const auto text, file.values<uint8_t>(kReads, {-1}));
  const Json reads =
      parse_json<Json>(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()));
  if (!reads.is_object() || !reads.contains("version") || !reads.contains("columns") ||
      !reads.contains("learner"))
    return Error{ErrorCode::kCorrupt, "", "the model does not describe its inputs"};
  auto model = std::make_unique<ProfileModel>();
  model->width = reads["columns"].size();
  if (reads["version"] != feature::kProfileVersion || reads["columns"] != columns_of(model->width))
    return Error{ErrorCode::kMismatch, "",
                 "was trained on another version of the counters; train the model again"};
  const Json& learner = reads["learner"];
  if (learner != to_string(Learner::kXgboost) && learner != to_string(Learner::kMlp))
    return Error{ErrorCode::kCorrupt, "", "the model has an unknown learner"};
  model->learner = learner == to_string(Learner::kMlp) ? Learner::kMlp : Learner::kXgboost;
  TS_ASSIGN_OR_RETURN(model->ranker, read_ranker(model->learner, file, model->width));
  model->model_card = std::move(file.card);
  return std::unique_ptr<CostModel>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<CostModel>> train_profile_model(const ProfiledPrograms& data,
                                                       const ProfileModelOptions& options) {
  if (data.programs.empty())
    return Error{ErrorCode::kInvalidArgument, "profiles", "there are no profiled programs to train on"};
  auto model = std::make_unique<ProfileModel>();
  model->learner = options.learner;
  model->width = data.programs.front().profile.size();
  std::vector<size_t> programs(data.programs.size());
  std::iota(programs.begin(), programs.end(), size_t{0});
  TS_ASSIGN_OR_RETURN(model->ranker,
                      train_on_programs(data, programs, FeatureSet::kProfile, options.learner, options.seed));
  model->model_card = card_of_profiles(data, kProfileKind, options.seed);
  model->model_card.command = options.command;
  model->model_card.parameters =
      Json{{"learner", to_string(options.learner)}, {"profiler", data.profiler}}.dump();
  return std::unique_ptr<CostModel>(std::move(model));
}

const CostModelKind& profile_kind() {
  static const CostModelKind kind = {
      kProfileKind,
      [](const Json&) -> Result<std::unique_ptr<CostModelTrainer>> { return needs_profiles(kProfileKind); },
      nullptr, read_profile_model};
  return kind;
}

}  // namespace tensorsmith::learn
