// The table of the product's cost models, and the look-up of kinds by name.
#include <nlohmann/json.hpp>

#include "learn/latency/kinds.h"

namespace tensorsmith::learn {

const CostModelKinds& product_kinds() {
  static const CostModelKinds kinds = [] {
    std::vector<const CostModelKind*> all = {&roofline_kind(),   &xgboost_kind(),  &tensorsmith_kind(),
                                             &correction_kind(), &two_step_kind(), &profile_kind()};
    for (const CostModelKind& kind : net_kinds()) all.push_back(&kind);
    return CostModelKinds(std::move(all));
  }();
  return kinds;
}

const CostModelKind* CostModelKinds::find(const std::string& name) const {
  for (const CostModelKind* kind : kinds_) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

Result<std::unique_ptr<CostModel>> CostModelKinds::make_untrained(const std::string& kind,
                                                                  const UntrainedOptions& options) const {
  const CostModelKind* found = find(kind);
  if (found != nullptr && found->make_untrained != nullptr) return found->make_untrained(options);
  return Error{ErrorCode::kUnsupported, "model '" + kind + "'", "cannot be used before it is trained"};
}

std::vector<std::string> CostModelKinds::untrained_names() const {
  std::vector<std::string> out;
  for (const CostModelKind* kind : kinds_)
    if (kind->make_untrained != nullptr) out.emplace_back(kind->name);
  return out;
}

std::vector<std::string> CostModelKinds::names() const {
  std::vector<std::string> out;
  for (const CostModelKind* kind : kinds_) out.emplace_back(kind->name);
  return out;
}

Result<std::unique_ptr<CostModelTrainer>> CostModelKinds::make_trainer(
    const std::string& kind, const nlohmann::json& parameters) const {
  const CostModelKind* found = find(kind);
  if (found != nullptr) return found->make_trainer(parameters);
  std::string listed;
  for (const std::string& name : names()) listed += (listed.empty() ? "" : ", ") + name;
  return Error{ErrorCode::kNotFound, "model '" + kind + "'",
               "is not a kind of cost model; the kinds are " + listed};
}

Result<std::unique_ptr<CostModel>> CostModelKinds::load(const std::string& path,
                                                        QueryProfiles profiles) const {
  TS_ASSIGN_OR_RETURN(ModelFile file, read_model_file(path));
  const CostModelKind* kind = find(file.card.kind);
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
