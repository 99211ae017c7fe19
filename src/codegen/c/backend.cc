#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>

#include "codegen/c/c_compiler.h"
#include "codegen/c/codegen.h"
#include "codegen/c/emitter.h"
#include "codegen/c/header_text.h"
#include "runtime/model_format.h"

namespace tensorsmith::codegen {
namespace {

// Instruction sets that speed kernels up: LLVM's names, and the flags of GCC and Clang.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kInstructions = {{
    {"sse4.2", "-msse4.2"},
    {"popcnt", "-mpopcnt"},
    {"avx", "-mavx"},
    {"avx2", "-mavx2"},
    {"fma", "-mfma"},
    {"f16c", "-mf16c"},
    {"bmi", "-mbmi"},
    {"bmi2", "-mbmi2"},
    {"lzcnt", "-mlzcnt"},
    {"movbe", "-mmovbe"},
    {"avxvnni", "-mavxvnni"},
    {"avx512f", "-mavx512f"},
    {"avx512cd", "-mavx512cd"},
    {"avx512bw", "-mavx512bw"},
    {"avx512dq", "-mavx512dq"},
    {"avx512vl", "-mavx512vl"},
    {"avx512vnni", "-mavx512vnni"},
    {"avx512bf16", "-mavx512bf16"},
    {"avx512vbmi", "-mavx512vbmi"},
    {"avx512vbmi2", "-mavx512vbmi2"},
}};

// A kernel in a shared library that is loaded into memory.
class DynamicKernel final : public LoadedKernel {
 public:
  explicit DynamicKernel(void* library) : library_(library) {}
  ~DynamicKernel() override { ::dlclose(library_); }
  DynamicKernel(const DynamicKernel&) = delete;
  DynamicKernel& operator=(const DynamicKernel&) = delete;
  TensorsmithKernel function() const override { return entry; }
  TensorsmithKernel entry = nullptr;

 private:
  void* library_;
};

class CBackend final : public Backend {
 public:
  std::string_view name() const override { return "c"; }
  std::string version() const override { return "C99, by cc"; }
  BackendTraits traits() const override { return {.self_contained = false, .other_architectures = false}; }

  Result<CompiledKernel> compile(const ir::Program& program, const target::Device& device,
                                 const CodegenOptions& options) const override {
    const auto start = std::chrono::steady_clock::now();
    if (device.arch != runtime::host_arch()) {
      return Error{ErrorCode::kUnsupported, "device " + device.name,
                   "the C compiler of this machine makes code for " + std::string(runtime::host_arch()) +
                       ", not for " + device.arch + "; write C files with --emit c and compile them on a " +
                       device.arch + " machine"};
    }
    TS_ASSIGN_OR_RETURN(const CSource source, emit_c(program, device, options));
    TS_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::create("tensorsmith-c"));
    const std::string header = c_header();
    TS_RETURN_IF_ERROR(write_file(scratch.file(kCHeaderName), header.data(), header.size()));
    TS_RETURN_IF_ERROR(write_file(scratch.file("kernel.c"), source.text.data(), source.text.size()));
    std::vector<std::string> arguments = c_flags();
    for (const std::string& flag : c_machine_flags(device)) arguments.push_back(flag);
    for (const char* word : {"-O2", "-fPIC", "-c", "-o"}) arguments.emplace_back(word);
    arguments.push_back(scratch.file("kernel.o"));
    arguments.push_back(scratch.file("kernel.c"));
    TS_RETURN_IF_ERROR(run_c_compiler(arguments, scratch));
    CompiledKernel kernel;
    kernel.symbol = source.symbol;
    TS_ASSIGN_OR_RETURN(kernel.object, read_file(scratch.file("kernel.o")));
    kernel.shared_workspace_bytes = source.shared_workspace_bytes;
    kernel.thread_workspace_bytes = source.thread_workspace_bytes;
    kernel.codegen_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return kernel;
  }

  Result<std::unique_ptr<LoadedKernel>> load(const std::vector<char>& object,
                                             const std::string& symbol) const override {
    const auto fail = [&](ErrorCode code, std::string reason) {
      return Error{code, "loading kernel '" + symbol + "'", std::move(reason)};
    };
    // The linker would accept an empty file as one with nothing to link.
    if (object.empty()) return fail(ErrorCode::kCorrupt, "not an object file");
    // Each library is loaded from a new path: for a path that is loaded already, dlopen would
    // return the library that it has.
    TS_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::create("tensorsmith-c"));
    auto library = link_in(scratch, {object});
    if (!library.ok()) return fail(ErrorCode::kCorrupt, "cannot be linked: " + library.error().reason);
    void* handle = ::dlopen(library->c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* problem = ::dlerror();
      return fail(ErrorCode::kCorrupt, problem != nullptr ? problem : "cannot be loaded");
    }
    auto kernel = std::make_unique<DynamicKernel>(handle);
    kernel->entry = reinterpret_cast<TensorsmithKernel>(::dlsym(handle, symbol.c_str()));
    if (kernel->entry == nullptr) return fail(ErrorCode::kNotFound, "the object has no such symbol");
    return std::unique_ptr<LoadedKernel>(std::move(kernel));
  }

  Result<std::vector<char>> link(const std::vector<std::vector<char>>& objects) const override {
    if (objects.empty()) return Error{ErrorCode::kInvalidArgument, "linking", "no objects"};
    TS_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::create("tensorsmith-c"));
    TS_ASSIGN_OR_RETURN(const std::string library, link_in(scratch, objects));
    return read_file(library);
  }

 private:
  // Links the objects and returns the path of the library.
  static Result<std::string> link_in(const ScratchDirectory& scratch,
                                     const std::vector<std::vector<char>>& objects) {
    std::vector<std::string> arguments = {"-shared", "-Wl,-z,noexecstack", "-o", scratch.file("kernels.so")};
    for (size_t i = 0; i < objects.size(); ++i) {
      arguments.push_back(scratch.file(std::to_string(i) + ".o"));
      TS_RETURN_IF_ERROR(write_file(arguments.back(), objects[i].data(), objects[i].size()));
    }
    arguments.emplace_back("-lm");
    TS_RETURN_IF_ERROR(run_c_compiler(arguments, scratch));
    return scratch.file("kernels.so");
  }
};

class CTextBackend final : public Backend {
 public:
  std::string_view name() const override { return "c-text"; }
  std::string version() const override { return "C99"; }
  BackendTraits traits() const override { return {.self_contained = false, .other_architectures = true}; }

  Result<CompiledKernel> compile(const ir::Program& program, const target::Device& device,
                                 const CodegenOptions& options) const override {
    const auto start = std::chrono::steady_clock::now();
    TS_ASSIGN_OR_RETURN(const CSource source, emit_c(program, device, options));
    CompiledKernel kernel;
    kernel.symbol = source.symbol;
    kernel.object.assign(source.text.begin(), source.text.end());
    kernel.shared_workspace_bytes = source.shared_workspace_bytes;
    kernel.thread_workspace_bytes = source.thread_workspace_bytes;
    kernel.codegen_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return kernel;
  }
  Result<std::unique_ptr<LoadedKernel>> load(const std::vector<char>&,
                                             const std::string& symbol) const override {
    return Error{ErrorCode::kUnsupported, "loading kernel '" + symbol + "'",
                 "the kernel is source text; compile it first"};
  }
  Result<std::vector<char>> link(const std::vector<std::vector<char>>&) const override {
    return Error{ErrorCode::kUnsupported, "linking", "kernels are source text; compile them first"};
  }
};

}  // namespace

const Backend& c_backend() {
  static const CBackend backend;
  return backend;
}

const Backend& c_text_backend() {
  static const CTextBackend backend;
  return backend;
}

Result<CSource> emit_c(const ir::Program& program, const target::Device& device,
                       const CodegenOptions& options) {
  TS_RETURN_IF_ERROR(check_compilable(program, options));
  if (device.kind() != target::DeviceKind::kCpu) {
    return Error{ErrorCode::kUnsupported, "device " + device.name,
                 "C can only be written for CPUs; choose a CPU as the device"};
  }
  const bool is_identifier = options.symbol.find('.') == std::string::npos &&
                             std::isdigit(static_cast<unsigned char>(options.symbol.front())) == 0;
  if (!is_identifier) {
    return Error{ErrorCode::kInvalidArgument, "codegen of '" + program.name + "'",
                 "symbol '" + options.symbol + "' is not a C identifier"};
  }
  return CEmitter(program, device, options, c99()).run();
}

std::string c_header() {
  std::string flags;
  for (const std::string& flag : c_flags()) flags += " " + flag;
  std::string text =
      "/* Kernels made by Tensorsmith. They are C99; build them with\n"
      "     cc" +
      flags +
      " -O2 -march=native -fPIC -shared -o kernels.so *.c -lm\n"
      "   and never with -ffast-math, which changes what they mean. */\n"
      "#ifndef TENSORSMITH_KERNELS_H_\n#define TENSORSMITH_KERNELS_H_\n\n";
  return text + kKernelAbiText + "\n" + kC99Text + "\n" + kHelpersText + "\n" + kVectorsText + "\n" +
         kVectorMathText + "\n#endif\n";
}

std::string c_declarations(const std::string& symbol) {
  return "void " + symbol + "(const TensorsmithKernelContext* context, void* const* buffers);\n" +
         "extern const int64_t " + symbol + TENSORSMITH_INFO_SUFFIX + "[];\n";
}

std::vector<std::string> c_flags() {
  return {"-std=c99", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"};
}

std::vector<std::string> c_machine_flags(const target::Device& device) {
  std::vector<std::string> flags;
  if (device.arch != "x86-64") return flags;
  for (const auto& [feature, flag] : kInstructions)
    if (device.has_feature(feature)) flags.emplace_back(flag);
  return flags;
}

}  // namespace tensorsmith::codegen
