#include "engine/tune/tune_sources.h"

#include "base/shipped_file.h"
#include "engine/model/load_model.h"

namespace tensorsmith::engine {

Result<SourceModel> load_source_model(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const auto tasks, load_tasks({{path}}));
  SourceModel model;
  model.name = path;
  for (const auto& shared : tasks) model.tasks.insert(shared.task.key);
  return model;
}

Result<TuneSources> read_tune_sources(const std::vector<std::string>& entries, bool warm_start) {
  TuneSources sources;
  if (warm_start && entries.empty())
    if (auto shipped = shipped_file(kStarterFile); !shipped.empty())
      sources.files.push_back(std::move(shipped));
  for (const std::string& entry : entries) {
    const bool is_model = entry.starts_with("zoo:") || entry.ends_with(".onnx");
    if (!is_model) {
      sources.files.push_back(entry);
      continue;
    }
    TS_ASSIGN_OR_RETURN(sources.models.emplace_back(), load_source_model(entry));
  }
  return sources;
}

Result<std::string> language_model_file(const std::string& given) {
  if (given != "shipped") return given;
  std::string file = shipped_file(kLanguageModelFile);
  if (file.empty())
    return Error{ErrorCode::kNotFound, "--lm shipped",
                 std::string("the language model that comes with Tensorsmith, ") + kLanguageModelFile +
                     ", is missing; name the file of a model"};
  return file;
}

Result<std::string> language_model_for(const search::StrategyKind& strategy, const std::string& given) {
  if (given.empty() || given == "none") return std::string();
  if (!strategy.asks_writer)
    return Error{
        ErrorCode::kInvalidArgument, "--lm",
        "the strategy '" + std::string(strategy.name) + "' does not use a language model; use evolutionary"};
  return language_model_file(given);
}

}  // namespace tensorsmith::engine
