// What the registry knows of each kind of model. A new kind is a file of its own and a line in registry.cc.
#pragma once

#include <nlohmann/json_fwd.hpp>

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

// A card with what the data says; the model adds metrics.
ModelCard make_card(const std::string& kind, const LatencyData& data, const TrainingControl& control,
                    const nlohmann::json& parameters);

}  // namespace tensorsmith::learn
