// What the registry knows of each kind of model. A new kind is a file of its own and a line in registry.cc.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "learn/latency/model_file.h"
#include "learn/training.h"

namespace tensorsmith::learn {

struct CostModelKind {
  const char* name;  // ModelCard::kind
  Result<std::unique_ptr<CostModelTrainer>> (*make_trainer)(const nlohmann::json& parameters);
  // What a search begins with that has no file; null for kinds that know nothing before they are trained.
  std::unique_ptr<CostModel> (*make_untrained)(const UntrainedOptions& options);
  // From a file whose card has this kind. kCorrupt where its tensors are not those of such a model.
  Result<std::unique_ptr<CostModel>> (*from_file)(ModelFile file);
};

const CostModelKind& random_kind();
const CostModelKind& draft_kind();
const CostModelKind& roofline_kind();
const CostModelKind& xgboost_kind();
const CostModelKind& tensorsmith_kind();
const CostModelKind& two_step_kind();  // learn/profile/two_step.h
const CostModelKind& profile_kind();   // learn/profile/profile_model.h
// The nets of learn/net/nets.h. kUnsupported and kNotFound where libtorch is missing (learn/net/module.h).
const std::vector<CostModelKind>& net_kinds();

// Of a model that has seen nothing.
ModelCard untrained_card(const std::string& kind, uint64_t seed);

// A card with what the data says, and with what the model that training went on from (base, may be nullptr)
// had seen; the trainer adds metrics.
ModelCard make_card(const std::string& kind, const TrainingData& data, const TrainingControl& control,
                    const nlohmann::json& parameters, const ModelCard* base = nullptr);

// Of all that decides what a training makes: kind, records, parameters, seed, the model it goes on from (may
// be nullptr). A checkpoint names it, so that no other training goes on from there.
std::string training_hash(const std::string& kind, const TrainingData& data, const TrainingControl& control,
                          const nlohmann::json& parameters, const CostModel* base = nullptr);

// Checkpoints are model files of a kind that cannot be loaded as a model.
ModelCard checkpoint_card(const std::string& training);
// Nothing where there is no such file. kMismatch for the checkpoint of another training.
Result<std::optional<ModelFile>> open_checkpoint(const std::string& path, const std::string& training);

}  // namespace tensorsmith::learn
