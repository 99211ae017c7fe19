#include "learn/search_model.h"

#include <algorithm>
#include <filesystem>

#include "base/shipped_file.h"
#include "learn/custom/command_model.h"
#include "learn/latency/held_out.h"
#include "learn/latency/kinds.h"
#include "learn/online/online.h"

namespace tensorsmith::learn {

namespace {

Result<std::string> shipped_search_model(const target::Device& device) {
  if (device.kind() == target::DeviceKind::kGpu) return std::string("xgboost");
  std::string file = shipped_file(kSearchModelFile);
  if (!file.empty()) return file;
  return Error{ErrorCode::kNotFound, std::string("cost model '") + kShippedModel + "'",
               std::string(kSearchModelFile) +
                   ", which comes with Tensorsmith, is missing; install Tensorsmith again or use xgboost"};
}

Result<std::unique_ptr<CostModel>> find_model(const SearchModelOptions& options,
                                              const target::Device& device) {
  std::error_code ignored;
  const std::vector<std::string> kinds = options.kinds->names();
  if (std::find(kinds.begin(), kinds.end(), options.model) != kinds.end()) {
    auto model = options.kinds->make_untrained(options.model, {options.seed, options.threads});
    if (model.ok()) return model;
    return Error{ErrorCode::kInvalidArgument, "cost model '" + options.model + "'",
                 "must be trained before a search can use it; name a file that `tensorsmith train --model " +
                     options.model + "` wrote, or use xgboost, which learns during the search"};
  }
  if (!std::filesystem::exists(options.model, ignored)) {
    return Error{ErrorCode::kInvalidArgument, "cost model '" + options.model + "'",
                 "is neither a file nor one of " + search_models_without_file(*options.kinds) +
                     "; command:PROGRAM asks a program of yours"};
  }
  TS_ASSIGN_OR_RETURN(auto model, options.kinds->load(options.model));
  TS_RETURN_IF_ERROR(check_knows(model->card(), options.model, device));
  return model;
}

// Makes the user's model that the options name; null if they name another one.
Result<std::unique_ptr<CostModel>> find_custom_model(const SearchModelOptions& options,
                                                     const target::Device& device) {
  MakeCustomScorer make_scorer = options.make_scorer;
  if (!make_scorer && options.model.starts_with(kCommandPrefix))
    make_scorer = [&](const CustomSession& session) {
      return make_command_model(std::string_view(options.model).substr(kCommandPrefix.size()), session);
    };
  if (!make_scorer) return std::unique_ptr<CostModel>();
  return make_custom_model({options.model, options.frozen, options.recorded}, device, make_scorer);
}

}  // namespace

std::string search_models_without_file(const CostModelKinds& kinds) {
  std::string names = std::string(kShippedModel) + ", ";
  for (const std::string& kind : kinds.untrained_names()) names += kind + ", ";
  return names + "none";
}

Result<std::unique_ptr<CostModel>> make_search_model(const SearchModelOptions& options,
                                                     const target::Device& device) {
  if (options.model == "none") {
    if (!options.frozen) return std::unique_ptr<CostModel>();
    return Error{ErrorCode::kInvalidArgument, "--frozen", "has no effect without a cost model; leave it out"};
  }
  TS_ASSIGN_OR_RETURN(std::unique_ptr<CostModel> custom, find_custom_model(options, device));
  if (custom != nullptr) return custom;
  SearchModelOptions named = options;
  if (named.model == kShippedModel) {
    TS_ASSIGN_OR_RETURN(named.model, shipped_search_model(device));
  }
  TS_ASSIGN_OR_RETURN(std::unique_ptr<CostModel> model, find_model(named, device));
  if (options.frozen) {
    if (!model->learns()) return model;
    return Error{ErrorCode::kInvalidArgument, "cost model '" + named.model + "'",
                 "learns only during the search, so --frozen would leave it untrained"};
  }
  if (model->learns()) return model;
  GbtOptions gbt = GbtOptions::online();
  gbt.seed = options.seed;
  gbt.threads = options.threads;
  return make_residual_model(std::move(model), gbt);
}

}  // namespace tensorsmith::learn
