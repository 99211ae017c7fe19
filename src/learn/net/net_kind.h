// The parts of a neural model that depend on its kind. Internal to learn/net; nets.h lists the
// kinds.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "learn/latency/model_file.h"
#include "learn/net/nets.h"
#include "learn/net/train_loop.h"

namespace tensorsmith::learn::net {

// A network and its training, as the parameters describe them.
struct NetDesign {
  BatchOptions batch;  // `devices` is empty here
  ScalingKind scaling = ScalingKind::kStandard;
  std::string transform = "log";  // of the labels, see LabelTransform::fit
  TrainOptions training;
  // devices: number of training devices.
  std::function<std::shared_ptr<Net>(int64_t devices)> make_net;
};

struct NetKind {
  const char* name;  // ModelCard::kind
  // values: receives all parameters with their values, for the card.
  Result<NetDesign> (*design)(const nlohmann::json& parameters, nlohmann::json& values);
};

#define TENSORSMITH_DECLARE_NET(name, design) \
  Result<NetDesign> design(const nlohmann::json& parameters, nlohmann::json& values);
TENSORSMITH_NETS(TENSORSMITH_DECLARE_NET)
#undef TENSORSMITH_DECLARE_NET

// Parses the parameter "base": "none", "flops" or "roofline".
BaseKind base_kind(const std::string& name);

std::unique_ptr<CostModelTrainer> make_net_trainer(const NetKind& kind, NetDesign design,
                                                   nlohmann::json parameters);
// kCorrupt if the tensors of the file do not fit such a network.
Result<std::unique_ptr<CostModel>> net_from_file(const NetKind& kind, const ModelFile& file);

}  // namespace tensorsmith::learn::net
