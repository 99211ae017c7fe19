// The kinds of cost models. The product's stand in registry.cc, those kept for comparison in
// lab/kinds/kinds.cc. A new kind needs a file of its own and a line in one of the two.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "learn/latency/model_file.h"
#include "learn/training.h"

namespace tensorsmith::learn {

struct CostModelKind {
  const char* name;  // ModelCard::kind
  Result<std::unique_ptr<CostModelTrainer>> (*make_trainer)(const nlohmann::json& parameters);
  // Makes the model that a search without a model file starts with; null for kinds that must be
  // trained first.
  std::unique_ptr<CostModel> (*make_untrained)(const UntrainedOptions& options);
  // Makes the model from a file whose card names this kind. kCorrupt if its tensors do not fit such
  // a model.
  Result<std::unique_ptr<CostModel>> (*from_file)(ModelFile file);
};

// The kinds that a program offers by name.
class CostModelKinds {
 public:
  explicit CostModelKinds(std::vector<const CostModelKind*> kinds) : kinds_(std::move(kinds)) {}

  const std::vector<const CostModelKind*>& all() const { return kinds_; }
  std::vector<std::string> names() const;
  // Names of the kinds that need no file: those without training and those that learn during a
  // search.
  std::vector<std::string> untrained_names() const;

  // parameters: a JSON object of hyper-parameters, with defaults for those that it leaves out;
  // kInvalidArgument for an unknown name.
  Result<std::unique_ptr<CostModelTrainer>> make_trainer(const std::string& kind,
                                                         const nlohmann::json& parameters) const;
  // kUnsupported for kinds that must be trained.
  Result<std::unique_ptr<CostModel>> make_untrained(const std::string& kind,
                                                    const UntrainedOptions& options) const;
  // Reads a model from its file. kCorrupt for a damaged file; kMismatch for one of another schema or
  // version, or of a kind that is not among these; kUnsupported for a model that reads profiles if
  // the queries have none.
  Result<std::unique_ptr<CostModel>> load(const std::string& path,
                                          QueryProfiles profiles = QueryProfiles::kNone) const;

 private:
  const CostModelKind* find(const std::string& name) const;

  std::vector<const CostModelKind*> kinds_;
};

const CostModelKinds& product_kinds();

const CostModelKind& roofline_kind();
const CostModelKind& xgboost_kind();
const CostModelKind& tensorsmith_kind();
const CostModelKind& correction_kind();  // learn/correction/correction_model.cc
const CostModelKind& two_step_kind();    // learn/profile/two_step.h
const CostModelKind& profile_kind();     // learn/profile/profile_model.h
// The kinds of neural networks (learn/net/nets.h): the product's, and those kept for comparison.
// Their functions return kUnsupported or kNotFound if libtorch is missing (learn/net/module.h).
const std::vector<CostModelKind>& net_kinds();
const std::vector<CostModelKind>& compared_net_kinds();

// Returns the card of a model that was trained on nothing.
ModelCard untrained_card(const std::string& kind, uint64_t seed);

// Returns a card filled from the training data and from the card of the model that training
// continued from (`base`, may be nullptr). The trainer adds the metrics.
ModelCard make_card(const std::string& kind, const TrainingData& data, const TrainingControl& control,
                    const nlohmann::json& parameters, const ModelCard* base = nullptr);

// Returns a hash of everything that determines the result of a training: kind, records, parameters,
// seed and the model that it continues from (`base`, may be nullptr). A checkpoint stores it, so
// that no other training resumes from that checkpoint.
std::string training_hash(const std::string& kind, const TrainingData& data, const TrainingControl& control,
                          const nlohmann::json& parameters, const CostModel* base = nullptr);

// Returns the card of a checkpoint: a model file whose kind cannot be loaded as a model.
ModelCard checkpoint_card(const std::string& training);
// Reads a checkpoint. Empty if the file does not exist; kMismatch if it belongs to another
// training.
Result<std::optional<ModelFile>> open_checkpoint(const std::string& path, const std::string& training);

}  // namespace tensorsmith::learn
