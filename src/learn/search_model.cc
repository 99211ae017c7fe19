#include "learn/search_model.h"

#include <algorithm>
#include <filesystem>

#include "learn/latency/held_out.h"
#include "learn/online/online.h"
#include "learn/training.h"

namespace tensorsmith::learn {

namespace {

Result<std::unique_ptr<CostModel>> find_model(const SearchModelOptions& options,
                                              const target::Device& device) {
  std::error_code ignored;
  const std::vector<std::string> kinds = cost_model_kinds();
  if (std::find(kinds.begin(), kinds.end(), options.model) != kinds.end()) {
    auto model = make_untrained(options.model, {options.seed, options.threads});
    if (model.ok()) return model;
    return Error{ErrorCode::kInvalidArgument, "cost model '" + options.model + "'",
                 "knows nothing before it is trained: name a file of `tensorsmith train --model " +
                     options.model + "`, or xgboost, which learns during the search"};
  }
  if (!std::filesystem::exists(options.model, ignored)) {
    return Error{ErrorCode::kInvalidArgument, "cost model '" + options.model + "'",
                 "is neither a file nor one of " + search_models_without_file()};
  }
  TS_ASSIGN_OR_RETURN(auto model, load_cost_model(options.model));
  TS_RETURN_IF_ERROR(check_knows(model->card(), options.model, device));
  return model;
}

}  // namespace

std::string search_models_without_file() {
  std::string names;
  for (const std::string& kind : untrained_kinds()) names += kind + ", ";
  return names + "none";
}

Result<std::unique_ptr<CostModel>> make_search_model(const SearchModelOptions& options,
                                                     const target::Device& device) {
  if (options.model == "none") {
    if (!options.frozen) return std::unique_ptr<CostModel>();
    return Error{ErrorCode::kInvalidArgument, "--frozen",
                 "there is no cost model to keep as it is: leave it out"};
  }
  TS_ASSIGN_OR_RETURN(std::unique_ptr<CostModel> model, find_model(options, device));
  if (options.frozen) {
    if (!model->learns()) return model;
    return Error{ErrorCode::kInvalidArgument, "cost model '" + options.model + "'",
                 "knows nothing but what it learns during the search, so it cannot be frozen"};
  }
  if (model->learns()) return model;
  GbtOptions gbt = GbtOptions::online();
  gbt.seed = options.seed;
  gbt.threads = options.threads;
  return make_residual_model(std::move(model), gbt);
}

}  // namespace tensorsmith::learn
