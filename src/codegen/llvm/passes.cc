#include "codegen/llvm/passes.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScopedNoAliasAA.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "codegen/llvm/reload.h"
#include "codegen/llvm/split_blocks.h"

namespace tensorsmith::codegen {
namespace {

// Sets an option that LLVM offers only on a command line; it applies to the whole process.
void set_option(const std::string& name, const std::string& value) {
  const auto& known = llvm::cl::getRegisteredOptions();
  const auto option = known.find(name);
  TS_CHECK(option != known.end() && !option->second->addOccurrence(0, name, value),
           "LLVM has no option -" + name + "=" + value);
}

void initialize_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Loop strength reduction compares the addresses of a loop with each other. In unrolled loops
    // there are hundreds of them, and the pass took a quarter of all code generation time. The
    // addresses differ by constants, which instructions can encode, so the kernels are as fast
    // without it.
    set_option("disable-lsr", "true");
    // This pass looks for chains of integer operations that could use mask registers; the integers
    // of kernels are indices and data.
    set_option("disable-x86-domain-reassignment", "true");
    // Equal loads are found across at most this many stores: values that are read again are read
    // soon.
    set_option("memssa-check-limit", "10");
    // At most this many accesses of an address are checked for whether its computation would fit
    // into all of them. Unrolled code has hundreds, and checking them took half of the preparation
    // for selection.
    set_option("cgp-max-address-users-to-scan", "4");
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::string triple_of(const target::Device& device) {
  if (device.arch == "x86-64") return "x86_64-unknown-linux-gnu";
  if (device.arch == "aarch64") return "aarch64-unknown-linux-gnu";
  return {};
}

// Registering the analyses costs more than optimizing a small kernel, so each thread has one set,
// which is cleared after each module.
struct Pipeline {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  // Promotion of stores out of loops compares all accesses of a loop with each other, so it runs
  // only if there is something to promote.
  llvm::FunctionPassManager before, hoist, hoist_and_promote, after;

  explicit Pipeline(llvm::TargetMachine& machine) {
    llvm::PassBuilder builder(&machine);
    llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
    library.disableAllFunctions();
    functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
    functions.registerPass([&] { return builder.buildDefaultAAPipeline(); });
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(sccs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, sccs, modules);

    before.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    const auto invariant_code_motion = [](unsigned accesses) {
      return llvm::createFunctionToLoopPassAdaptor(
          llvm::LICMPass(llvm::LICMOptions(/*LicmMssaOptCap=*/100, /*LicmMssaNoAccForPromotionCap=*/accesses,
                                           /*AllowSpeculation=*/true)),
          /*UseMemorySSA=*/true, /*UseBlockFrequencyInfo=*/false);
    };
    hoist.addPass(invariant_code_motion(0));
    hoist_and_promote.addPass(invariant_code_motion(4000));
    // Finds equal masked loads across stores; they cannot be marked as invariant.
    after.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
    after.addPass(llvm::SimplifyCFGPass());
  }

  void run(llvm::Module& module, const RegisterFile& registers) {
    for (llvm::Function& function : module) {
      if (function.isDeclaration()) continue;
      before.run(function, functions);
      (stores_to_one_place(function) ? hoist_and_promote : hoist).run(function, functions);
      after.run(function, functions);
      reload_instead_of_spill(function, registers);
    }
    loops.clear();
    functions.clear();
    sccs.clear();
    modules.clear();
  }

 private:
  // Returns whether a loop stores to an address that is invariant in it.
  bool stores_to_one_place(llvm::Function& function) {
    const llvm::LoopInfo& info = functions.getResult<llvm::LoopAnalysis>(function);
    for (const llvm::BasicBlock& block : function) {
      const llvm::Loop* loop = info.getLoopFor(&block);
      if (loop == nullptr) continue;
      for (const llvm::Instruction& instruction : block) {
        const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
        if (store == nullptr) continue;
        const llvm::Value* address = store->getPointerOperand();
        while (const auto* offset = llvm::dyn_cast<llvm::GetElementPtrInst>(address)) {
          if (!offset->hasAllConstantIndices()) break;
          address = offset->getPointerOperand();
        }
        if (loop->isLoopInvariant(address)) return true;
      }
    }
    return false;
  }
};

// Disables passes that kernels of many loops do not profit from. Hoisting of constants out of loops
// before register allocation saves loads if there are one or two nests. If there are many, the
// constants are hoisted out of the loop around all of them and occupy registers that the nests
// need, and register allocation takes twice as long. Constants that fit are still hoisted
// afterwards. Machine CSE is disabled, too.
class ForManyLoops final : public llvm::OptPassGate {
 public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) override {
    return pass != "Early Machine Loop Invariant Code Motion" &&
           pass != "Machine Common Subexpression Elimination";
  }
};

constexpr int kManyLoops = 5;

int innermost_loops(const llvm::Module& module) {
  int loops = 0;
  for (const llvm::Function& function : module)
    for (const llvm::BasicBlock& block : function)
      loops += llvm::is_contained(llvm::successors(&block), &block) ? 1 : 0;
  return loops;
}

// Writes LLVM IR as an object file or as assembly text. Creating these passes costs more than
// running them over a small kernel, and LLVM can run them over one module after another.
class ObjectWriter {
 public:
  // Like TargetMachine::addPassesToEmitFile, without the schedulers: their dependence graphs are
  // quadratic in the loads and stores of a block, of which unrolled code has hundreds. They gain
  // nothing, since the code is emitted in a good order and out-of-order processors reorder it.
  ObjectWriter(llvm::TargetMachine& machine, llvm::CodeGenFileType type) : stream_(bytes_) {
    auto& target = static_cast<llvm::LLVMTargetMachine&>(machine);
    auto* info = new llvm::MachineModuleInfoWrapperPass(&target);
    llvm::TargetPassConfig* config = target.createPassConfig(passes_);
    config->setDisableVerify(true);
    config->disablePass(&llvm::MachineSchedulerID);
    config->disablePass(&llvm::PostRASchedulerID);
    config->disablePass(&llvm::PostMachineSchedulerID);
    // The last pass over LLVM IR, identified by the ID that all its instances share.
    static const void* const prepare =
        std::unique_ptr<llvm::Pass>(llvm::createCodeGenPrepareLegacyPass())->getPassID();
    config->insertPass(prepare, create_split_blocks_pass());
    passes_.add(config);
    passes_.add(info);
    const bool unsupported =
        target.getTargetTriple().isX86() ? select_lean(target, *config) : config->addISelPasses();
    TS_CHECK(!unsupported, "LLVM cannot select instructions for this machine");
    config->addMachinePasses();
    config->setInitialized();
    const bool printed = !target.addAsmPrinter(passes_, stream_, nullptr, type, info->getMMI().getContext());
    TS_CHECK(printed, "LLVM cannot emit this file type");
    passes_.add(llvm::createFreeMachineFunctionPass());
  }

  std::vector<char> run(llvm::Module& module) {
    bytes_.clear();
    llvm::LLVMContext& context = module.getContext();
    llvm::OptPassGate& gate = context.getOptPassGate();
    ForManyLoops for_many_loops;
    if (innermost_loops(module) >= kManyLoops) context.setOptPassGate(for_many_loops);
    passes_.run(module);
    context.setOptPassGate(gate);
    return {bytes_.begin(), bytes_.end()};
  }

 private:
  // Like TargetPassConfig::addISelPasses (addMachinePasses follows later), but without a third of
  // the passes, which handle constructs that kernels do not have.
  bool select_lean(llvm::LLVMTargetMachine& target, llvm::TargetPassConfig& config) {
    passes_.add(llvm::createTargetTransformInfoWrapperPass(target.getTargetIRAnalysis()));
    passes_.add(llvm::createPreISelIntrinsicLoweringPass());
    passes_.add(llvm::createScopedNoAliasAAWrapperPass());
    passes_.add(llvm::createBasicAAWrapperPass());
    passes_.add(llvm::createUnreachableBlockEliminationPass());
    passes_.add(llvm::createScalarizeMaskedMemIntrinLegacyPass());
    passes_.add(llvm::createExpandReductionsPass());
    passes_.add(llvm::createInterleavedAccessPass());
    config.addCodeGenPrepare();
    for (const void* pass :
         {&llvm::EarlyTailDuplicateID, &llvm::OptimizePHIsID, &llvm::StackColoringID,
          &llvm::EarlyIfConverterID, &llvm::ShrinkWrapID, &llvm::TailDuplicateID,
          &llvm::FixupStatepointCallerSavedID, &llvm::RemoveRedundantDebugValuesID, &llvm::FEntryInserterID,
          &llvm::XRayInstrumentationID, &llvm::PatchableFunctionID, &llvm::FuncletLayoutID,
          &llvm::StackMapLivenessID, &llvm::LiveDebugValuesID, &llvm::MachineSanitizerBinaryMetadataID,
          &llvm::StackFrameLayoutAnalysisPassID})
      config.disablePass(pass);
    // The method is protected, because front ends do not need it.
    struct Steps : llvm::TargetPassConfig {
      using llvm::TargetPassConfig::addCoreISelPasses;
    };
    return (config.*&Steps::addCoreISelPasses)();
  }

  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream stream_;
  llvm::legacy::PassManager passes_;
};

struct Machine {
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<Pipeline> pipeline;
  std::unique_ptr<ObjectWriter> objects;
};

// LLVM's target machines and analyses are not thread-safe, and creating them takes milliseconds.
std::map<std::string, Machine>& machines_of_thread() {
  thread_local std::map<std::string, Machine> machines;
  return machines;
}

Machine& kept(const llvm::TargetMachine& machine) {
  for (auto& [key, made] : machines_of_thread())
    if (made.machine.get() == &machine) return made;
  throw_internal_error(__FILE__, __LINE__, "the target machine belongs to another thread");
}

std::string joined_features(const target::Device& device) {
  std::string out;
  for (const std::string& f : device.features) out += (out.empty() ? "" : ",") + f;
  return out;
}

}  // namespace

Result<llvm::TargetMachine*> machine_for(const target::Device& device) {
  const std::string place = "device " + device.name;
  const std::string triple = triple_of(device);
  if (device.kind() != target::DeviceKind::kCpu || triple.empty()) {
    return Error{ErrorCode::kUnsupported, place,
                 "no code generator for " + device.arch + "; choose an x86-64 or aarch64 CPU"};
  }
  if (device.arch == "x86-64" && !device.has_feature("sse4.2")) {
    return Error{ErrorCode::kUnsupported, place,
                 "x86-64 code needs SSE4.2; the device does not list +sse4.2"};
  }
  const std::string features = joined_features(device);
  const std::string key = triple + "/" + device.processor + "/" + features;
  auto& machines = machines_of_thread();
  if (const auto it = machines.find(key); it != machines.end()) return it->second.machine.get();

  initialize_targets();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return Error{ErrorCode::kUnsupported, place, "LLVM: " + error};
  // This is checked before a machine is created, because LLVM prints messages about unknown names.
  const std::unique_ptr<llvm::MCSubtargetInfo> baseline(target->createMCSubtargetInfo(triple, "", ""));
  if (!device.processor.empty() && !baseline->isCPUStringValid(device.processor)) {
    return Error{ErrorCode::kInvalidArgument, place,
                 "LLVM does not know the CPU '" + device.processor + "' for " + device.arch +
                     "; correct the device's cpu"};
  }
  for (const std::string& f : device.features) {
    const auto& known = baseline->getAllProcessorFeatures();
    if (f.empty() || std::none_of(known.begin(), known.end(), [&](const auto& k) {
          return f.compare(1, std::string::npos, k.Key) == 0;
        })) {
      return Error{ErrorCode::kInvalidArgument, place,
                   "LLVM does not know the feature '" + f + "' for " + device.arch +
                       "; correct the device's features"};
    }
  }
  llvm::TargetOptions options;
  Machine made;
  made.machine.reset(target->createTargetMachine(triple, device.processor, features, options,
                                                 llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                 llvm::CodeGenOptLevel::Default));
  TS_CHECK(made.machine != nullptr, "LLVM cannot create a target machine for " + key);
  made.pipeline = std::make_unique<Pipeline>(*made.machine);
  made.objects = std::make_unique<ObjectWriter>(*made.machine, llvm::CodeGenFileType::ObjectFile);
  return machines.emplace(key, std::move(made)).first->second.machine.get();
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine, const RegisterFile& registers) {
  kept(machine).pipeline->run(module, registers);
}

std::vector<char> emit_object(llvm::Module& module, llvm::TargetMachine& machine) {
  return kept(machine).objects->run(module);
}

std::vector<char> emit_text(llvm::Module& module, llvm::TargetMachine& machine) {
  return ObjectWriter(machine, llvm::CodeGenFileType::AssemblyFile).run(module);
}

std::vector<char> emit_commented_text(llvm::Module& module, llvm::TargetMachine& machine) {
  machine.Options.MCOptions.AsmVerbose = true;
  std::vector<char> text = emit_text(module, machine);
  machine.Options.MCOptions.AsmVerbose = false;
  return text;
}

}  // namespace tensorsmith::codegen
