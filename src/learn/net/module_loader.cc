#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "learn/latency/kinds.h"
#include "learn/net/module.h"
#include "learn/net/nets.h"

namespace tensorsmith::learn {

namespace net {

namespace {

#if TENSORSMITH_TORCH
Result<const Module*> load() {
  // Found by the program's run path: the build folder, or lib/tensorsmith beside the installed bin.
  // A libtorch of another version in this process is told here, not by a crash later.
  void* handle = dlopen(kModuleFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return Error{ErrorCode::kNotFound, kModuleFile,
                 std::string("the module of the neural models cannot be loaded; it comes with the package "
                             "tensorsmith-neural and needs libtorch: ") +
                     (why != nullptr ? why : "")};
  }
  const auto entry = reinterpret_cast<ModuleEntry>(dlsym(handle, kModuleEntry));
  const Module* module = entry == nullptr ? nullptr : entry();
  if (module == nullptr || std::string_view(module->version) != TENSORSMITH_VERSION ||
      module->layout != layout_of_interface())
    return Error{ErrorCode::kMismatch, kModuleFile,
                 "the module of the neural models is of another build of Tensorsmith; install both again"};
  return module;
}
#else
Result<const Module*> load() {
  return Error{ErrorCode::kUnsupported, "",
               "this build of Tensorsmith has no neural models; configure it with -DTENSORSMITH_TORCH=ON "
               "(needs libtorch)"};
}
#endif

Result<std::unique_ptr<CostModelTrainer>> load_trainer(const char* kind, const nlohmann::json& parameters) {
  TS_ASSIGN_OR_RETURN(const Module* module, load_module());
  return module->make_trainer(kind, parameters);
}

Result<std::unique_ptr<CostModel>> load_model(ModelFile file) {
  TS_ASSIGN_OR_RETURN(const Module* module, load_module());
  return module->from_file(file);
}

}  // namespace

Result<const Module*> load_module() {
  static const Result<const Module*> module = load();
  return module;
}

}  // namespace net

namespace lm {

Result<LanguageModel> train_language_model(const SentenceSource& sentences, const LanguageTraining& training,
                                           const LanguageModel* base, const TrainingControl& control) {
  TS_ASSIGN_OR_RETURN(const net::Module* module, net::load_module());
  return module->train_language_model(sentences, training, base, control);
}

}  // namespace lm

const std::vector<CostModelKind>& net_kinds() {
#define TENSORSMITH_NET(name, design) \
  {name, [](const nlohmann::json& p) { return net::load_trainer(name, p); }, nullptr, &net::load_model},
  static const std::vector<CostModelKind> kinds = {TENSORSMITH_NETS(TENSORSMITH_NET)};
#undef TENSORSMITH_NET
  return kinds;
}

}  // namespace tensorsmith::learn
