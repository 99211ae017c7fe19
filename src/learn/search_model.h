// The cost model that steers a search.
#pragma once

#include <memory>
#include <string>

#include "learn/cost_model.h"
#include "target/target.h"

namespace tensorsmith::learn {

struct SearchModelOptions {
  // A file of `train`, a kind that needs none (make_untrained), or "none": candidates are ranked by the design
  // space's estimate alone.
  std::string model = "xgboost";
  bool frozen = false;  // the model does not learn from what the search measures
  uint64_t seed = 0;
  int threads = 1;
};

// The names that take no file, for people: "random, ..., none".
std::string search_models_without_file();

// Null for "none". A model that does not learn by itself becomes the prior of one that does
// (make_residual_model), unless it is to stay frozen. Errors: those of load_cost_model; kMismatch for a model
// that says nothing of such devices; kInvalidArgument for a name that is neither a file nor such a kind, and
// for what cannot be frozen.
Result<std::unique_ptr<CostModel>> make_search_model(const SearchModelOptions& options,
                                                     const target::Device& device);

}  // namespace tensorsmith::learn
