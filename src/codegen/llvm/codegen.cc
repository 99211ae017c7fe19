#include "codegen/llvm/codegen.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <chrono>

#include "codegen/llvm/combine_extrema.h"
#include "codegen/llvm/load.h"
#include "codegen/llvm/machine_mix.h"
#include "codegen/llvm/passes.h"
#include "codegen/llvm/statement_emitter.h"
#include "codegen/llvm/trace_accesses.h"
#include "codegen/promote.h"
#include "codegen/traced.h"
#include "codegen/widen.h"

namespace tensorsmith::codegen {
namespace {

struct Built {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  llvm::TargetMachine* machine = nullptr;
  RegisterFile registers;
  int64_t shared_bytes = 0;
  int64_t thread_bytes = 0;
  bool uses_matrix_units = false;
};

Result<Built> build(const ir::Program& program, const target::Device& device, const CodegenOptions& options) {
  TS_RETURN_IF_ERROR(check_compilable(program, options));
  Built built;
  TS_ASSIGN_OR_RETURN(built.machine, machine_for(device));
  built.registers = {device.cpu().vector_registers, device.cpu().vector_bytes};
  built.context = std::make_unique<llvm::LLVMContext>();
  built.context->setDiscardValueNames(true);
  built.module = std::make_unique<llvm::Module>(options.symbol, *built.context);
  built.module->setDataLayout(built.machine->createDataLayout());
  built.module->setTargetTriple(built.machine->getTargetTriple().str());
  TargetTraits traits;
  traits.vector_bytes = device.cpu().vector_bytes;
  traits.vector_registers = device.cpu().vector_registers;
  traits.l2_bytes = device.l2_bytes;
  traits.fma = device.arch == "aarch64" || device.has_feature("fma");
  traits.half_convert = device.arch == "aarch64" || device.has_feature("f16c");
  traits.masked_memory = target::has_masked_memory(device);
  traits.dot4 = target::has_dot4(device);
  traits.dot2 = target::has_dot2(device);
  if (device.arch == "x86-64") {
    const int widest = device.has_feature("avx512bw") ? 64 : device.has_feature("avx2") ? 32 : 16;
    traits.multiply_add_bytes = std::min(widest, device.cpu().vector_bytes);
    traits.multiply_add_u8 = device.has_feature("ssse3") || device.has_feature("sse4.2") || widest > 16;
  }
  traits.mask_registers = device.has_feature("avx512f");
  traits.matrix = sched::MatrixUnits::of(device);
  const ir::Program prepared = combine_extrema(promote_accumulators(
      widen_copies(program), device.cpu().vector_registers, device.cpu().vector_bytes, traits.matrix));
  StatementEmitter emitter(prepared, traits, options, *built.module);
  emitter.run();
  built.shared_bytes = emitter.shared_workspace_bytes();
  built.thread_bytes = emitter.thread_workspace_bytes();
  built.uses_matrix_units = emitter.uses_matrix_units();
  return built;
}

void verify_module(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  TS_CHECK(!llvm::verifyModule(module, &stream), "emitted code is malformed: " + text);
}

CompiledKernel finish(Built& built, const CodegenOptions& options) {
  CompiledKernel kernel;
  kernel.symbol = options.symbol;
  kernel.object = emit_object(*built.module, *built.machine);
  kernel.shared_workspace_bytes = built.shared_bytes;
  kernel.thread_workspace_bytes = built.thread_bytes;
  kernel.uses_matrix_units = built.uses_matrix_units;
  return kernel;
}

class LlvmBackend final : public Backend {
 public:
  std::string_view name() const override { return "llvm"; }
  std::string version() const override { return "LLVM " LLVM_VERSION_STRING; }
  BackendTraits traits() const override { return {.self_contained = true, .other_architectures = true}; }

  Result<CompiledKernel> compile(const ir::Program& program, const target::Device& device,
                                 const CodegenOptions& options) const override {
    const auto start = std::chrono::steady_clock::now();
    TS_ASSIGN_OR_RETURN(Built built, build(program, device, options));
    optimize(*built.module, *built.machine, built.registers);
    CompiledKernel kernel = finish(built, options);
    kernel.codegen_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return kernel;
  }
  Result<TracedKernel> compile_traced(const ir::Program& program, const target::Device& device,
                                      const CodegenOptions& options, TraceBuffer& buffer) const override {
    if (device.arch != "x86-64")
      return Error{ErrorCode::kUnsupported, "device " + device.name,
                   "instructions can only be counted in x86-64 code, not in code for " + device.arch};
    TS_ASSIGN_OR_RETURN(Built built, build(program, device, options));
    optimize(*built.module, *built.machine, built.registers);
    const size_t blocks = name_blocks(*built.module);
    TracedKernel traced;
    const std::unique_ptr<llvm::Module> plain = llvm::CloneModule(*built.module);
    const std::vector<char> text = emit_commented_text(*plain, *built.machine);
    traced.blocks = machine_mixes({text.data(), text.size()}, blocks);
    traced.segments = trace_accesses(*built.module, buffer);
    verify_module(*built.module);
    traced.kernel = finish(built, options);
    return traced;
  }
  Result<std::unique_ptr<LoadedKernel>> load(const std::vector<char>& object,
                                             const std::string& symbol) const override {
    return load_object(object, symbol);
  }
  Result<std::vector<char>> link(const std::vector<std::vector<char>>& objects) const override {
    return link_shared_library(objects);
  }
};

}  // namespace

const Backend& llvm_backend() {
  static const LlvmBackend backend;
  return backend;
}

Result<std::string> emit_llvm_ir(const ir::Program& program, const target::Device& device,
                                 const CodegenOptions& options) {
  TS_ASSIGN_OR_RETURN(Built built, build(program, device, options));
  verify_module(*built.module);
  optimize(*built.module, *built.machine, built.registers);
  verify_module(*built.module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  built.module->print(stream, nullptr);
  return text;
}

Result<std::string> emit_assembly(const ir::Program& program, const target::Device& device,
                                  const CodegenOptions& options) {
  TS_ASSIGN_OR_RETURN(Built built, build(program, device, options));
  optimize(*built.module, *built.machine, built.registers);
  const std::vector<char> text = emit_text(*built.module, *built.machine);
  return std::string(text.begin(), text.end());
}

}  // namespace tensorsmith::codegen
