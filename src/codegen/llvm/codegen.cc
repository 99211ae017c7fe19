#include "codegen/llvm/codegen.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <chrono>

#include "codegen/llvm/combine_extrema.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/passes.h"
#include "codegen/llvm/promote.h"
#include "ir/analysis.h"
#include "ir/verify_program.h"

namespace tensorsmith::codegen {
namespace {

struct Built {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  llvm::TargetMachine* machine = nullptr;
  int64_t shared_bytes = 0;
  int64_t thread_bytes = 0;
};

Status check(const ir::Program& program, const CodegenOptions& options) {
  const auto name_ok = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  if (options.symbol.empty() || !std::all_of(options.symbol.begin(), options.symbol.end(), name_ok)) {
    return Error{ErrorCode::kInvalidArgument, "codegen of '" + program.name + "'",
                 "symbol '" + options.symbol + "' is not a name of letters, digits, '_' and '.'"};
  }
  TS_RETURN_IF_ERROR(ir::verify(program));
  Status status;
  ir::for_each_stmt(program.body, [&](const ir::Stmt& s) {
    if (const auto* loop = ir::as<ir::For>(s); loop != nullptr && loop->kind == ir::ForKind::kThread) {
      status = Error{ErrorCode::kUnsupported, "loop " + loop->var.name(),
                     "is bound to a GPU thread axis; the program was scheduled for a GPU, not for a CPU"};
    }
  });
  return status;
}

Result<Built> build(const ir::Program& program, const target::Device& device, const CodegenOptions& options) {
  TS_RETURN_IF_ERROR(check(program, options));
  Built built;
  TS_ASSIGN_OR_RETURN(built.machine, machine_for(device));
  built.context = std::make_unique<llvm::LLVMContext>();
  built.context->setDiscardValueNames(true);
  built.module = std::make_unique<llvm::Module>(options.symbol, *built.context);
  built.module->setDataLayout(built.machine->createDataLayout());
  built.module->setTargetTriple(built.machine->getTargetTriple().str());
  TargetTraits traits;
  traits.vector_bytes = device.vector_bytes;
  traits.vector_registers = device.vector_registers;
  traits.fma = device.arch == "aarch64" || device.has_feature("fma");
  traits.half_convert = device.arch == "aarch64" || device.has_feature("f16c");
  traits.masked_memory = device.has_feature("avx512vl") && device.has_feature("avx512bw");
  traits.dot4 = target::has_dot4(device);
  traits.dot2 = target::has_dot2(device);
  traits.multiply_add = device.arch == "x86-64" &&
                        (device.vector_bytes <= 16 || device.has_feature("avx2")) &&
                        (device.vector_bytes <= 32 || device.has_feature("avx512bw"));
  traits.mask_registers = device.has_feature("avx512f");
  const ir::Program prepared =
      combine_extrema(promote_accumulators(program, device.vector_registers, device.vector_bytes));
  Emitter emitter(prepared, traits, options, *built.module);
  emitter.run();
  built.shared_bytes = emitter.shared_workspace_bytes();
  built.thread_bytes = emitter.thread_workspace_bytes();
  return built;
}

void verify_module(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  TS_CHECK(!llvm::verifyModule(module, &stream), "emitted code is malformed: " + text);
}

}  // namespace

Result<CompiledKernel> compile(const ir::Program& program, const target::Device& device,
                               const CodegenOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  TS_ASSIGN_OR_RETURN(Built built, build(program, device, options));
  optimize(*built.module, *built.machine);
  CompiledKernel kernel;
  kernel.symbol = options.symbol;
  kernel.object = emit_object(*built.module, *built.machine);
  kernel.shared_workspace_bytes = built.shared_bytes;
  kernel.thread_workspace_bytes = built.thread_bytes;
  kernel.codegen_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return kernel;
}

Result<std::string> emit_llvm_ir(const ir::Program& program, const target::Device& device,
                                 const CodegenOptions& options) {
  TS_ASSIGN_OR_RETURN(Built built, build(program, device, options));
  verify_module(*built.module);
  optimize(*built.module, *built.machine);
  verify_module(*built.module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  built.module->print(stream, nullptr);
  return text;
}

Result<std::string> emit_assembly(const ir::Program& program, const target::Device& device,
                                  const CodegenOptions& options) {
  TS_ASSIGN_OR_RETURN(Built built, build(program, device, options));
  optimize(*built.module, *built.machine);
  const std::vector<char> text = emit_text(*built.module, *built.machine);
  return std::string(text.begin(), text.end());
}

std::string compiler_version() { return "LLVM " LLVM_VERSION_STRING; }

}  // namespace tensorsmith::codegen
