#include "codegen/cuda/nvrtc.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "runtime/device/driver_library.h"

namespace tensorsmith::codegen {
namespace {

struct ProgramTag;
using Program = ProgramTag*;

// Library names, newest version first.
constexpr const char* kLibraries[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
constexpr const char* kRemedy =
    "install NVRTC, for example from PyPI (pip install nvidia-cuda-nvrtc-cu12), and name its folder lib";

enum Code : int { kSuccess = 0, kOutOfMemory = 1 };

// Returns 90 for "sm_90a", and 0 if the string is no architecture.
int number_of(const std::string& architecture) {
  int number = 0;
  if (architecture.starts_with("sm_"))
    std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), number);
  return number;
}

}  // namespace

struct Nvrtc::Api {
  int (*get_version)(int*, int*);
  const char* (*get_error_string)(int);
  int (*count_architectures)(int*);
  int (*get_architectures)(int*);
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const*,
                const char* const*);
  int (*destroy)(Program*);
  int (*compile)(Program, int, const char* const*);
  int (*get_log_size)(Program, size_t*);
  int (*get_log)(Program, char*);
  int (*get_cubin_size)(Program, size_t*);
  int (*get_cubin)(Program, char*);

  std::pair<int, int> version;
  std::vector<int> architectures;

  static Result<std::unique_ptr<Api>> load(const std::string& file);
  Error error(ErrorCode code, int result, const std::string& log) const;
  Result<CudaModule> compile_program(Program program, const std::vector<const char*>& flags) const;
};

Result<std::unique_ptr<Nvrtc::Api>> Nvrtc::Api::load(const std::string& file) {
  TS_ASSIGN_OR_RETURN(runtime::DriverLibrary library, runtime::DriverLibrary::open(file, kRemedy));
  auto api = std::make_unique<Api>();
  library.find("nvrtcVersion", api->get_version);
  library.find("nvrtcGetErrorString", api->get_error_string);
  library.find("nvrtcGetNumSupportedArchs", api->count_architectures);
  library.find("nvrtcGetSupportedArchs", api->get_architectures);
  library.find("nvrtcCreateProgram", api->create);
  library.find("nvrtcDestroyProgram", api->destroy);
  library.find("nvrtcCompileProgram", api->compile);
  library.find("nvrtcGetProgramLogSize", api->get_log_size);
  library.find("nvrtcGetProgramLog", api->get_log);
  library.find("nvrtcGetCUBINSize", api->get_cubin_size);
  library.find("nvrtcGetCUBIN", api->get_cubin);
  TS_RETURN_IF_ERROR(library.complete());
  int count = 0;
  if (api->get_version(&api->version.first, &api->version.second) != kSuccess ||
      api->count_architectures(&count) != kSuccess || count < 1)
    return Error{ErrorCode::kUnsupported, file,
                 "does not report its version or the GPUs that it supports; " + std::string(kRemedy)};
  api->architectures.resize(count);
  api->get_architectures(api->architectures.data());
  std::sort(api->architectures.begin(), api->architectures.end());
  return api;
}

Error Nvrtc::Api::error(ErrorCode code, int result, const std::string& log) const {
  const std::string said = runtime::in_one_line(log.c_str());
  return Error{code, "NVRTC " + std::to_string(version.first) + "." + std::to_string(version.second),
               said.empty() ? get_error_string(result) : said};
}

Result<CudaModule> Nvrtc::Api::compile_program(Program program, const std::vector<const char*>& flags) const {
  const int result = compile(program, flags.size(), flags.data());
  size_t bytes = 0;
  std::string log;
  if (get_log_size(program, &bytes) == kSuccess) {
    log.resize(bytes);
    get_log(program, log.data());
  }
  if (result == kOutOfMemory) return error(ErrorCode::kResourceExhausted, result, "");
  if (result != kSuccess) return error(ErrorCode::kInvalidArgument, result, log);
  CudaModule module;
  if (get_cubin_size(program, &bytes) != kSuccess || bytes == 0)
    return error(ErrorCode::kUnsupported, result, "this version produces no machine code");
  module.cubin.resize(bytes);
  get_cubin(program, module.cubin.data());
  TS_ASSIGN_OR_RETURN(module.kernels, parse_ptxas_log(log));
  return module;
}

Nvrtc::Nvrtc(std::unique_ptr<Api> api) : api_(std::move(api)) {}
Nvrtc::~Nvrtc() = default;

Result<std::shared_ptr<const Nvrtc>> Nvrtc::open(std::span<const std::string> folders) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const std::string& folder : folders) {
    for (const char* name : kLibraries) {
      const std::filesystem::path file = std::filesystem::path(folder) / name;
      if (files.empty() && std::filesystem::exists(file, ignored)) files.push_back(file);
    }
  }
  if (files.empty()) files.assign(std::begin(kLibraries), std::end(kLibraries));
  Error error;
  for (const std::string& file : files) {
    auto api = Api::load(file);
    if (api.ok()) return std::shared_ptr<const Nvrtc>(new Nvrtc(std::move(api).value()));
    error = std::move(api).error();
  }
  return error;
}

std::pair<int, int> Nvrtc::version() const { return api_->version; }
const std::vector<int>& Nvrtc::architectures() const { return api_->architectures; }

Result<CudaModule> Nvrtc::compile(const std::string& source, const std::string& architecture,
                                  std::span<const std::string> flags) const {
  if (!std::binary_search(api_->architectures.begin(), api_->architectures.end(), number_of(architecture))) {
    std::string known;
    for (const int number : api_->architectures)
      known += (known.empty() ? "sm_" : ", sm_") + std::to_string(number);
    return api_->error(
        ErrorCode::kUnsupported, kSuccess,
        "unknown architecture '" + architecture + "'; this version generates code for " + known);
  }
  const std::string for_architecture = "--gpu-architecture=" + architecture;
  std::vector<const char*> all = {for_architecture.c_str(), "--ptxas-options=-v"};
  for (const std::string& flag : flags) all.push_back(flag.c_str());
  Program program = nullptr;
  if (const int result = api_->create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
      result != kSuccess)
    return api_->error(ErrorCode::kResourceExhausted, result, "");
  auto module = api_->compile_program(program, all);
  api_->destroy(&program);
  return module;
}

}  // namespace tensorsmith::codegen
