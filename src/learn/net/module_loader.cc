#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "learn/latency/kinds.h"
#include "learn/net/module.h"
#include "learn/net/nets.h"

namespace tensorsmith::learn {

namespace net {

namespace {

#if TENSORSMITH_TORCH
// An installation of PyPI's torch: its folder and version, and the module's file for that version.
struct TorchWheel {
  std::string folder, version, file;
};

std::optional<TorchWheel> torch_wheel() {
  const char* folder = std::getenv("TENSORSMITH_TORCH_FOLDER");
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  TorchWheel out{folder, "", ""};
  std::ifstream in(out.folder + "/version.py");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("__version__")) continue;
    constexpr std::string_view kDigits = "0123456789";
    const size_t major = line.find_first_of(kDigits);
    const size_t minor = major == std::string::npos ? major : line.find('.', major);
    const size_t end = minor == std::string::npos ? minor : line.find_first_not_of(kDigits, minor + 1);
    if (end != std::string::npos) out.version = line.substr(major, end - major);
  }
  out.file = "libtensorsmith_net_torch" + out.version + ".so";
  return out;
}

std::string last_error() {
  const char* why = dlerror();
  return why != nullptr ? why : "";
}

// Returns nullptr if there is no module for this version. The dynamic linker does not search
// Python's folders, so torch's libraries are loaded first and then found by name. libtorch.so also
// loads the libraries for GPUs.
Result<void*> open_for(const TorchWheel& torch) {
  if (torch.version.empty())
    return Error{ErrorCode::kNotFound, "TENSORSMITH_TORCH_FOLDER",
                 torch.folder + " is not the folder of an installed torch package"};
  // Succeeds if torch is already imported.
  if (void* handle = dlopen(torch.file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  if (last_error().starts_with(torch.file)) return nullptr;
  const std::string library = torch.folder + "/lib/libtorch.so";
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
    return Error{ErrorCode::kNotFound, library, "cannot be loaded: " + last_error()};
  if (void* handle = dlopen(torch.file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  return Error{ErrorCode::kNotFound, torch.file, "cannot be loaded: " + last_error()};
}

Result<void*> open_module() {
  std::string without;
  // The module is found by the program's run path: in the build folder, or in lib/tensorsmith
  // beside the installed bin.
  if (const auto torch = torch_wheel()) {
    TS_ASSIGN_OR_RETURN(void* handle, open_for(*torch));
    if (handle != nullptr) return handle;
    without = "there is no module for torch " + torch->version + " (" + torch->folder + "), and ";
  }
  // If this process already has another version of libtorch, loading fails here instead of crashing
  // later.
  if (void* handle = dlopen(kModuleFile, RTLD_NOW | RTLD_LOCAL)) return handle;
  return Error{ErrorCode::kNotFound, kModuleFile,
               without +
                   "the module of the neural models cannot be loaded; it comes with the package "
                   "tensorsmith-neural and needs libtorch: " +
                   last_error()};
}

Result<const Module*> load() {
  TS_ASSIGN_OR_RETURN(void* handle, open_module());
  const auto entry = reinterpret_cast<ModuleEntry>(dlsym(handle, kModuleEntry));
  const Module* module = entry == nullptr ? nullptr : entry();
  if (module == nullptr || std::string_view(module->version) != TENSORSMITH_VERSION ||
      module->layout != layout_of_interface())
    return Error{
        ErrorCode::kMismatch, kModuleFile,
        "the module of the neural models belongs to another build of Tensorsmith; install both again"};
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

#define TENSORSMITH_NET(name, design) \
  {name, [](const nlohmann::json& p) { return net::load_trainer(name, p); }, nullptr, &net::load_model},

const std::vector<CostModelKind>& net_kinds() {
  static const std::vector<CostModelKind> kinds = {TENSORSMITH_PRODUCT_NETS(TENSORSMITH_NET)};
  return kinds;
}

const std::vector<CostModelKind>& compared_net_kinds() {
  static const std::vector<CostModelKind> kinds = {TENSORSMITH_COMPARED_NETS(TENSORSMITH_NET)};
  return kinds;
}

#undef TENSORSMITH_NET

}  // namespace tensorsmith::learn
