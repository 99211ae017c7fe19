// Looks up the kinds of neural models by name.
#include "learn/net/net_kind.h"

#include "learn/net/module.h"

namespace tensorsmith::learn::net {

namespace {

#define TENSORSMITH_NET(name, design) {name, &design},
constexpr NetKind kKinds[] = {TENSORSMITH_NETS(TENSORSMITH_NET)};
#undef TENSORSMITH_NET

const NetKind* find_kind(const std::string& name) {
  for (const NetKind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

Error unknown(const std::string& name) {
  return {ErrorCode::kMismatch, "model '" + name + "'",
          "is not a neural model that this build of Tensorsmith has"};
}

}  // namespace

Result<std::unique_ptr<CostModelTrainer>> make_trainer(const std::string& name, const nlohmann::json& given) {
  const NetKind* kind = find_kind(name);
  if (kind == nullptr) return unknown(name);
  nlohmann::json values;
  TS_ASSIGN_OR_RETURN(NetDesign design, kind->design(given, values));
  return make_net_trainer(*kind, std::move(design), std::move(values));
}

Result<std::unique_ptr<CostModel>> from_file(const ModelFile& file) {
  const NetKind* kind = find_kind(file.card.kind);
  if (kind == nullptr) return unknown(file.card.kind);
  return net_from_file(*kind, file);
}

}  // namespace tensorsmith::learn::net
