// The kinds of latency models by name.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "learn/latency/kinds.h"

namespace tensorsmith::learn {

namespace {

std::vector<const LatencyKind*> kinds() { return {&random_kind(), &roofline_kind()}; }

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

ModelCard make_card(const std::string& kind, const LatencyData& data, const TrainingControl& control,
                    const nlohmann::json& parameters) {
  ModelCard card;
  card.kind = kind;
  card.feature_version = feature::kPerStoreVersion;
  card.store_hash = data.store->content_hash();
  card.records = static_cast<int64_t>(data.train.size());
  card.seed = control.seed;
  card.command = control.command;
  card.parameters = parameters.dump();
  card.metrics = "{}";
  std::set<uint32_t> devices, workloads;
  // What validated chose the model: its tasks have been seen too.
  for (const auto* part : {&data.train, &data.validation}) {
    for (const int64_t i : *part) {
      const Store::Entry entry = data.store->entry(i);
      devices.insert(entry.device);
      workloads.insert(entry.workload);
    }
  }
  for (const uint32_t d : devices) card.devices.push_back(data.devices[d]->name);
  for (const uint32_t w : workloads) card.workloads.push_back(data.store->workloads()[w].key);
  std::sort(card.workloads.begin(), card.workloads.end());
  return card;
}

}  // namespace tensorsmith::learn
