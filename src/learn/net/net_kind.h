// What one kind of net adds to what all have in common. Internal to learn/net; nets.h lists the kinds.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "learn/latency/model_file.h"
#include "learn/net/nets.h"
#include "learn/net/train_loop.h"

namespace tensorsmith::learn::net {

// A net and its training as parameters describe them.
struct NetDesign {
  BatchOptions batch;  // without devices
  ScalingKind scaling = ScalingKind::kStandard;
  std::string transform = "log";  // of labels: LabelTransform::fit
  TrainOptions training;
  // devices: how many it is trained on.
  std::function<std::shared_ptr<Net>(int64_t devices)> make_net;
};

struct NetKind {
  const char* name;  // ModelCard::kind
  // values: all parameters with their values, as the card keeps them.
  Result<NetDesign> (*design)(const nlohmann::json& parameters, nlohmann::json& values);
};

#define TENSORSMITH_DECLARE_NET(name, design) \
  Result<NetDesign> design(const nlohmann::json& parameters, nlohmann::json& values);
TENSORSMITH_NETS(TENSORSMITH_DECLARE_NET)
#undef TENSORSMITH_DECLARE_NET

// By the name of the parameter "base": "none", "flops" or "roofline".
BaseKind base_kind(const std::string& name);

std::unique_ptr<CostModelTrainer> make_net_trainer(const NetKind& kind, NetDesign design,
                                                   nlohmann::json parameters);
// kCorrupt where the file's tensors are not those of such a net.
Result<std::unique_ptr<CostModel>> net_from_file(const NetKind& kind, const ModelFile& file);

}  // namespace tensorsmith::learn::net
