// The parts of a model card and checkpoint that are common to all kinds of models.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.h"
#include "learn/latency/held_out.h"
#include "learn/latency/kinds.h"

namespace tensorsmith::learn {

namespace {

constexpr const char* kCheckpointKind = "checkpoint";

void merge(std::vector<std::string>& names, const std::vector<std::string>& others) {
  names.insert(names.end(), others.begin(), others.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace

ModelCard untrained_card(const std::string& kind, uint64_t seed) {
  ModelCard card;
  card.kind = kind;
  card.feature_version = feature::kPerStoreVersion;
  card.seed = seed;
  return card;
}

ModelCard make_card(const std::string& kind, const TrainingData& data, const TrainingControl& control,
                    const nlohmann::json& parameters, const ModelCard* base) {
  ModelCard card = untrained_card(kind, control.seed);
  card.store_hash = data.store->content_hash();
  card.records = std::ssize(data.train);
  card.command = control.command;
  card.split = control.split;
  card.parameters = parameters.dump();
  card.metrics = "{}";
  std::set<uint32_t> devices, workloads;
  // The validation part chose the model, so its tasks count as seen.
  for (const auto* part : {&data.train, &data.validation}) {
    for (const int64_t i : *part) {
      const Store::Entry entry = data.store->entry(i);
      devices.insert(entry.device);
      workloads.insert(entry.workload);
    }
  }
  std::vector<std::string> names, keys;
  for (const uint32_t d : devices) {
    names.push_back(data.devices[d]->name);
    card.seen.push_back(seen_device(*data.devices[d]));
  }
  for (const uint32_t w : workloads) keys.push_back(data.store->workloads()[w].key);
  merge(card.devices, names);
  merge(card.workloads, keys);
  if (base != nullptr) {
    merge(card.devices, base->devices);
    merge(card.workloads, base->workloads);
    card.records += base->records;
    for (const SeenDevice& before : seen_devices(*base)) {
      if (std::none_of(card.seen.begin(), card.seen.end(),
                       [&](const auto& d) { return d.name == before.name; }))
        card.seen.push_back(before);
    }
    // These were measured on the devices of the base model; a training with several devices
    // measures its own.
    card.new_device = base->new_device;
    card.new_kind = base->new_kind;
  }
  std::sort(card.seen.begin(), card.seen.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return card;
}

std::string training_hash(const std::string& kind, const TrainingData& data, const TrainingControl& control,
                          const nlohmann::json& parameters, const CostModel* base) {
  Hasher hasher;
  hasher.add(kind).add(parameters.dump()).add(control.seed).add(data.store->content_hash());
  for (const auto* part : {&data.train, &data.validation, &data.unlabelled}) {
    hasher.add(part->size());
    for (const int64_t i : *part) hasher.add(i);
  }
  for (const target::Device* device : data.devices) hasher.add(device->key());
  if (base != nullptr) {
    const ModelCard& card = base->card();
    hasher.add(card.kind).add(card.store_hash).add(card.seed).add(card.parameters).add(card.metrics);
    for (const std::string& key : card.workloads) hasher.add(key);
  }
  return hasher.hex128();
}

ModelCard checkpoint_card(const std::string& training) {
  ModelCard card;
  card.kind = kCheckpointKind;
  card.feature_version = feature::kPerStoreVersion;
  card.store_hash = training;
  card.parameters = card.metrics = "{}";
  return card;
}

Result<std::optional<ModelFile>> open_checkpoint(const std::string& path, const std::string& training) {
  if (!std::filesystem::exists(path)) return std::optional<ModelFile>();
  TS_ASSIGN_OR_RETURN(ModelFile file, read_model_file(path));
  if (file.card.kind != kCheckpointKind || file.card.store_hash != training)
    return Error{ErrorCode::kMismatch, path,
                 "is the checkpoint of another training (with other data, parameters or seed); remove it or "
                 "name another file"};
  return std::optional<ModelFile>(std::move(file));
}

}  // namespace tensorsmith::learn
