// Looks up the kinds of latency models by name.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "learn/latency/kinds.h"

namespace tensorsmith::learn {

namespace {

std::vector<const CostModelKind*> kinds() {
  std::vector<const CostModelKind*> out = {&random_kind(),  &draft_kind(),       &roofline_kind(),
                                           &xgboost_kind(), &tensorsmith_kind(), &two_step_kind(),
                                           &profile_kind()};
  for (const CostModelKind& kind : net_kinds()) out.push_back(&kind);
  return out;
}

const CostModelKind* find_kind(const std::string& name) {
  for (const CostModelKind* kind : kinds()) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<CostModel>> make_untrained(const std::string& kind, const UntrainedOptions& options) {
  const CostModelKind* found = find_kind(kind);
  if (found != nullptr && found->make_untrained != nullptr) return found->make_untrained(options);
  return Error{ErrorCode::kUnsupported, "model '" + kind + "'", "cannot be used before it is trained"};
}

std::vector<std::string> untrained_kinds() {
  std::vector<std::string> names;
  for (const CostModelKind* kind : kinds())
    if (kind->make_untrained != nullptr) names.emplace_back(kind->name);
  return names;
}

std::vector<std::string> cost_model_kinds() {
  std::vector<std::string> names;
  for (const CostModelKind* kind : kinds()) names.emplace_back(kind->name);
  return names;
}

Result<std::unique_ptr<CostModelTrainer>> make_trainer(const std::string& kind,
                                                       const nlohmann::json& parameters) {
  const CostModelKind* found = find_kind(kind);
  if (found != nullptr) return found->make_trainer(parameters);
  std::string names;
  for (const std::string& name : cost_model_kinds()) names += (names.empty() ? "" : ", ") + name;
  return Error{ErrorCode::kNotFound, "model '" + kind + "'",
               "is not a kind of cost model; the kinds are " + names};
}

Result<std::unique_ptr<CostModel>> load_cost_model(const std::string& path, QueryProfiles profiles) {
  TS_ASSIGN_OR_RETURN(ModelFile file, read_model_file(path));
  const CostModelKind* kind = find_kind(file.card.kind);
  if (kind == nullptr)
    return Error{
        ErrorCode::kMismatch, path,
        "is a model of kind '" + file.card.kind + "', which this build of Tensorsmith does not have"};
  auto model = kind->from_file(std::move(file));
  if (!model.ok()) return Error{model.error().code, path, model.error().reason};
  if ((*model)->inputs().profile && profiles == QueryProfiles::kNone)
    return Error{
        ErrorCode::kUnsupported, path,
        "is a model of kind '" + (*model)->card().kind +
            "', which needs the counters of programs that have run, so it works only with `eval --from-db`; "
            "`train --features profile --model two-step` makes a model that predicts the counters itself"};
  return model;
}

}  // namespace tensorsmith::learn
