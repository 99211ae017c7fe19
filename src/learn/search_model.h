// The cost model that guides a search.
#pragma once

#include <memory>
#include <string>

#include "learn/cost_model.h"
#include "learn/custom/custom_model.h"
#include "target/target.h"

namespace tensorsmith::learn {

class CostModelKinds;
const CostModelKinds& product_kinds();  // learn/latency/kinds.h

// Name of the model that comes with Tensorsmith: kSearchModelFile for CPUs, "xgboost" for GPUs, for which there
// is no file.
inline constexpr const char* kShippedModel = "shipped";

struct SearchModelOptions {
  // A file written by `train`, a kind that needs no training (CostModelKinds::make_untrained),
  // "command:PROGRAM" for a model of the user (learn/custom/command_model.h), kShippedModel, or "none": then
  // only the estimate of the design space ranks the candidates.
  std::string model = kShippedModel;
  MakeCustomScorer make_scorer;  // makes a model of the user, whose name is `model`; empty: there is none
  bool frozen = false;           // the model does not learn from the measurements of the search
  uint64_t seed = 0;
  int threads = 1;
  const CostModelKinds* kinds = &product_kinds();
  bool recorded = false;  // the search is on the programs of a store
};

// Returns the names that are not files, for messages: "shipped, xgboost, ..., none".
std::string search_models_without_file(const CostModelKinds& kinds);

// Makes the model; null for "none". A trained model that cannot learn by itself becomes the prior of one that
// learns (make_residual_model) unless options.frozen is set or it is a model of the user. Errors: those of
// CostModelKinds::load and make_custom_model; kMismatch for a model that cannot predict programs on such a
// device; kInvalidArgument for a name that is neither a file nor such a kind, and if `frozen` is set for
// "none" or for a model that only learns during the search; kNotFound if the shipped file is missing.
Result<std::unique_ptr<CostModel>> make_search_model(const SearchModelOptions& options,
                                                     const target::Device& device);

}  // namespace tensorsmith::learn
