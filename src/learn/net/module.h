// Loads the neural models. They are in a module of their own, loaded on first use, because libtorch
// may be absent and takes most of a second to load.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "learn/latency/model_file.h"
#include "learn/lm/language_training.h"
#include "learn/training.h"

namespace tensorsmith::learn::net {

// Hash of the sizes of the types that the program and the module exchange. They may differ between
// two builds of the same version.
constexpr uint64_t layout_of_interface() {
  uint64_t out = 0;
  for (const size_t size :
       {sizeof(Prediction), sizeof(ProgramQuery), sizeof(ModelCard), sizeof(MeasuredProgram),
        sizeof(ModelFile), sizeof(TrainingData), sizeof(TrainingControl), sizeof(lm::LanguageTraining)})
    out = out * 1099511628211ULL + size;
  return out;
}

// The table that the module exports under the name kModuleEntry. Program and module must come from
// the same build; otherwise `version` or `layout` differs.
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

// Implemented in the module. kMismatch for a kind that this build lacks.
Result<std::unique_ptr<CostModelTrainer>> make_trainer(const std::string& kind,
                                                       const nlohmann::json& parameters);
Result<std::unique_ptr<CostModel>> from_file(const ModelFile& file);
Result<lm::LanguageModel> train_language_net(const lm::SentenceSource& sentences,
                                             const lm::LanguageTraining& training,
                                             const lm::LanguageModel* base, const TrainingControl& control);

// Implemented in the program. Loads the module on the first call: if the environment variable
// TENSORSMITH_TORCH_FOLDER (set by the Python package) names a folder of PyPI's torch and there is
// a module for its version, that module; else the one for the system's libtorch. kUnsupported if
// this build has no module (-DTENSORSMITH_TORCH=OFF); kNotFound if the module or a library that it
// needs cannot be loaded; kMismatch if it comes from another build.
Result<const Module*> load_module();

}  // namespace tensorsmith::learn::net
