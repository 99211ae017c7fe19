#include "engine/tune/tune_sources.h"

#include "engine/model/load_model.h"
#include "engine/predict/shipped_file.h"
#include "search/strategy.h"

namespace tensorsmith::engine {

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
    TS_ASSIGN_OR_RETURN(const auto tasks, load_tasks({{entry}}));
    SourceModel model;
    model.name = entry;
    for (const auto& shared : tasks) model.tasks.insert(shared.task.key);
    sources.models.push_back(std::move(model));
  }
  return sources;
}

Result<std::string> language_model_for(const std::string& strategy, const std::string& given) {
  using Writer = search::StrategyKind::Writer;
  TS_ASSIGN_OR_RETURN(const auto* kind, search::find_strategy(strategy));
  const bool is_file = !given.empty() && given != "none";
  if (kind->writer == Writer::kNone) {
    if (!is_file) return std::string();
    return Error{ErrorCode::kInvalidArgument, "--lm",
                 "the strategy '" + strategy + "' does not use a language model; use evolutionary or lm"};
  }
  if (is_file) return given;
  // With a language model the evolutionary search is better at equal trials but worse at equal
  // seconds (docs/results/language_search.json).
  if (kind->writer == Writer::kAsked) return std::string();
  std::string file = given == "none" ? std::string() : shipped_file(kLanguageModelFile);
  if (file.empty())
    return Error{ErrorCode::kInvalidArgument, "--strategy " + strategy,
                 "measures schedules that a language model writes; name the model's file with --lm"};
  return file;
}

}  // namespace tensorsmith::engine
