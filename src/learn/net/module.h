// libtorch is big (it takes most of a second to load) and may be absent, so the neural models are a module of
// their own, loaded when one of them is asked for.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "learn/latency/model_file.h"
#include "learn/lm/language_training.h"
#include "learn/training.h"

namespace tensorsmith::learn::net {

// Sizes of what the program and the module hand to each other: those of two builds of one version may differ.
constexpr uint64_t layout_of_interface() {
  uint64_t out = 0;
  for (const size_t size :
       {sizeof(Prediction), sizeof(ProgramQuery), sizeof(ModelCard), sizeof(MeasuredProgram),
        sizeof(ModelFile), sizeof(TrainingData), sizeof(TrainingControl), sizeof(lm::LanguageTraining)})
    out = out * 1099511628211ULL + size;
  return out;
}

// What the module exports, under the name kModuleEntry. Program and module are built together: `version` or
// `layout` differs where they were not.
struct Module {
  const char* version;
  uint64_t layout;  // layout_of_interface()
  Result<std::unique_ptr<CostModelTrainer>> (*make_trainer)(const std::string& kind,
                                                            const nlohmann::json& parameters);
  Result<std::unique_ptr<CostModel>> (*from_file)(const ModelFile& file);
  Result<lm::LanguageModel> (*train_language_model)(const lm::SentenceSource& sentences,
                                                    const lm::LanguageTraining& training,
                                                    const lm::LanguageModel* base,
                                                    const TrainingControl& control);
};
using ModuleEntry = const Module* (*)();
inline constexpr char kModuleEntry[] = "tensorsmith_net_module";
inline constexpr char kModuleFile[] = "libtensorsmith_net.so";

// In the module. kMismatch for a kind that this build does not have.
Result<std::unique_ptr<CostModelTrainer>> make_trainer(const std::string& kind,
                                                       const nlohmann::json& parameters);
Result<std::unique_ptr<CostModel>> from_file(const ModelFile& file);
Result<lm::LanguageModel> train_language_net(const lm::SentenceSource& sentences,
                                             const lm::LanguageTraining& training,
                                             const lm::LanguageModel* base, const TrainingControl& control);

// In the program: loads the module, once: for PyPI's torch in the folder TENSORSMITH_TORCH_FOLDER (an environment variable, which
// the Python package sets) where there is one for its version, else the one for the system's libtorch. kUnsupported where this
// build has none (-DTENSORSMITH_TORCH=OFF); kNotFound where it or a library that it needs cannot be loaded; kMismatch where it is
// of another build.
Result<const Module*> load_module();

}  // namespace tensorsmith::learn::net
