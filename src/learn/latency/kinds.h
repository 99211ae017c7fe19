// What the registry knows of each kind of model. A new kind is a file of its own and a line in registry.cc.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "learn/latency/latency_model.h"
#include "learn/latency/model_file.h"

namespace tensorsmith::learn {

struct LatencyKind {
  const char* name;  // ModelCard::kind
  Result<std::unique_ptr<LatencyTrainer>> (*make_trainer)(const nlohmann::json& parameters);
  // From a file whose card has this kind. kCorrupt where its tensors are not those of such a model.
  Result<std::unique_ptr<LatencyModel>> (*from_file)(ModelFile file);
};

const LatencyKind& random_kind();
const LatencyKind& roofline_kind();
const LatencyKind& xgboost_kind();
const LatencyKind& tensorsmith_kind();
// mlp, tlp, mtl-tlp, cdmpp. kUnsupported and kNotFound where libtorch is missing (learn/net/module.h).
const std::vector<LatencyKind>& net_kinds();

// A card with what the data says, and with what the model that training went on from (base, may be nullptr)
// had seen; the trainer adds metrics.
ModelCard make_card(const std::string& kind, const LatencyData& data, const TrainingControl& control,
                    const nlohmann::json& parameters, const ModelCard* base = nullptr);

// Of all that decides what a training makes: kind, records, parameters, seed, the model it goes on from (may
// be nullptr). A checkpoint names it, so that no other training goes on from there.
std::string training_hash(const std::string& kind, const LatencyData& data, const TrainingControl& control,
                          const nlohmann::json& parameters, const LatencyModel* base = nullptr);

// Checkpoints are model files of a kind that cannot be loaded as a model.
ModelCard checkpoint_card(const std::string& training);
// Nothing where there is no such file. kMismatch for the checkpoint of another training.
Result<std::optional<ModelFile>> open_checkpoint(const std::string& path, const std::string& training);

}  // namespace tensorsmith::learn
