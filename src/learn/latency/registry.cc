// The kinds of latency models by name.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "learn/latency/kinds.h"

namespace tensorsmith::learn {

namespace {

std::vector<const LatencyKind*> kinds() {
  std::vector<const LatencyKind*> out = {&random_kind(), &roofline_kind(), &xgboost_kind(),
                                         &tensorsmith_kind()};
  for (const LatencyKind& kind : net_kinds()) out.push_back(&kind);
  return out;
}

const LatencyKind* find_kind(const std::string& name) {
  for (const LatencyKind* kind : kinds()) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> latency_model_kinds() {
  std::vector<std::string> names;
  for (const LatencyKind* kind : kinds()) names.emplace_back(kind->name);
  return names;
}

Result<std::unique_ptr<LatencyTrainer>> make_latency_trainer(const std::string& kind,
                                                             const nlohmann::json& parameters) {
  const LatencyKind* found = find_kind(kind);
  if (found != nullptr) return found->make_trainer(parameters);
  std::string names;
  for (const std::string& name : latency_model_kinds()) names += (names.empty() ? "" : ", ") + name;
  return Error{ErrorCode::kNotFound, "model '" + kind + "'", "no such kind; known are " + names};
}

Result<std::unique_ptr<LatencyModel>> load_latency_model(const std::string& path) {
  TS_ASSIGN_OR_RETURN(ModelFile file, read_model_file(path));
  const LatencyKind* kind = find_kind(file.card.kind);
  if (kind == nullptr)
    return Error{
        ErrorCode::kMismatch, path,
        "is a model of kind '" + file.card.kind + "', which this build of Tensorsmith does not have"};
  auto model = kind->from_file(std::move(file));
  if (!model.ok()) return Error{model.error().code, path, model.error().reason};
  return model;
}

}  // namespace tensorsmith::learn
