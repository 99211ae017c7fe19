// Loads objects into this process.
#include "codegen/llvm/load.h"

#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Object/ObjectFile.h>

namespace tensorsmith::codegen {
namespace {

// Kernels need no external symbols; resolving one in this process would hide a defect.
class NoSymbols final : public llvm::LegacyJITSymbolResolver {
 public:
  llvm::JITSymbol findSymbol(const std::string&) override { return nullptr; }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
};

class RuntimeLinkedKernel final : public LoadedKernel {
 public:
  llvm::SectionMemoryManager memory;
  TensorsmithKernel entry = nullptr;
  TensorsmithKernel function() const override { return entry; }
};

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_object(const std::vector<char>& object,
                                                  const std::string& symbol) {
  const auto fail = [&](ErrorCode code, std::string reason) {
    return Error{code, "loading kernel '" + symbol + "'", std::move(reason)};
  };
  const llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), symbol);
  auto file = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!file) return fail(ErrorCode::kCorrupt, "not an object file: " + llvm::toString(file.takeError()));
  for (const llvm::object::SymbolRef& s : (*file)->symbols()) {
    auto flags = s.getFlags();
    if (!flags) return fail(ErrorCode::kCorrupt, "symbol table: " + llvm::toString(flags.takeError()));
    auto name = s.getName();
    if (!name) return fail(ErrorCode::kCorrupt, "symbol table: " + llvm::toString(name.takeError()));
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) != 0 && !name->empty())
      return fail(ErrorCode::kCorrupt,
                  "needs symbol '" + name->str() + "', but kernels must be self-contained");
  }
  auto kernel = std::make_unique<RuntimeLinkedKernel>();
  NoSymbols none;
  llvm::RuntimeDyld linker(kernel->memory, none);
  linker.loadObject(**file);
  if (linker.hasError()) return fail(ErrorCode::kCorrupt, linker.getErrorString().str());
  const llvm::JITEvaluatedSymbol found = linker.getSymbol(symbol);
  if (!found) return fail(ErrorCode::kNotFound, "the object has no such symbol");
  linker.finalizeWithMemoryManagerLocking();
  if (linker.hasError()) return fail(ErrorCode::kCorrupt, linker.getErrorString().str());
  kernel->entry = reinterpret_cast<TensorsmithKernel>(found.getAddress());
  return std::unique_ptr<LoadedKernel>(std::move(kernel));
}

}  // namespace tensorsmith::codegen
