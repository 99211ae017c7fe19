#include "codegen/llvm/trace_accesses.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <cstddef>
#include <optional>
#include <string>

namespace tensorsmith::codegen {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);

struct AccessPlace {
  llvm::Instruction* at = nullptr;
  llvm::Value* address = nullptr;  // a vector of addresses for gathers and scatters
  TracedAccess::Kind kind = TracedAccess::Kind::kLoad;
  int32_t bytes = 0;  // size of the access; of one element if the address is a vector
  unsigned lanes = 1;
};
struct Segment {
  llvm::Instruction* begin = nullptr;
  std::vector<AccessPlace> accesses;
};

int32_t size_of(const llvm::DataLayout& layout, llvm::Type* type) {
  return layout.getTypeStoreSize(type).getFixedValue();
}

std::optional<AccessPlace> access_of(llvm::Instruction& instruction, const llvm::DataLayout& layout) {
  using Kind = TracedAccess::Kind;
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
    return AccessPlace{load, load->getPointerOperand(), Kind::kLoad, size_of(layout, load->getType()), 1};
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
    return AccessPlace{store, store->getPointerOperand(), Kind::kStore,
                       size_of(layout, store->getValueOperand()->getType()), 1};
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (call == nullptr) return std::nullopt;
  const auto lanes_of = [](llvm::Value* addresses) {
    return llvm::cast<llvm::FixedVectorType>(addresses->getType())->getNumElements();
  };
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::masked_load:
      return AccessPlace{call, call->getArgOperand(0), Kind::kLoad, size_of(layout, call->getType()), 1};
    case llvm::Intrinsic::masked_store:
      return AccessPlace{call, call->getArgOperand(1), Kind::kStore,
                         size_of(layout, call->getArgOperand(0)->getType()), 1};
    case llvm::Intrinsic::masked_gather:
      return AccessPlace{call, call->getArgOperand(0), Kind::kLoad,
                         size_of(layout, call->getType()->getScalarType()), lanes_of(call->getArgOperand(0))};
    case llvm::Intrinsic::masked_scatter:
      return AccessPlace{call, call->getArgOperand(1), Kind::kStore,
                         size_of(layout, call->getArgOperand(0)->getType()->getScalarType()),
                         lanes_of(call->getArgOperand(1))};
    case llvm::Intrinsic::prefetch:
      return AccessPlace{call, call->getArgOperand(0), Kind::kPrefetch, 1, 1};
    default:
      return std::nullopt;
  }
}

bool is_real_call(const llvm::Instruction& instruction) {
  return llvm::isa<llvm::CallBase>(instruction) && !llvm::isa<llvm::IntrinsicInst>(instruction);
}

// Splits a block into segments. A segment ends at a call, because the callee's reports follow, and
// where a report would get too long.
std::vector<Segment> segments_of(llvm::BasicBlock& block, const llvm::DataLayout& layout) {
  std::vector<Segment> out = {{&*block.getFirstInsertionPt(), {}}};
  size_t words = 1;
  for (llvm::Instruction& instruction : block) {
    const auto access = access_of(instruction, layout);
    if (access && words + access->lanes > kMostReport) {
      out.push_back({&instruction, {}});
      words = 1;
    }
    if (access) {
      out.back().accesses.push_back(*access);
      words += access->lanes;
    }
    if (is_real_call(instruction)) {
      out.push_back({instruction.getNextNode(), {}});
      words = 1;
    }
  }
  return out;
}

class Reporter {
 public:
  Reporter(llvm::Module& module, TraceBuffer& buffer) : buffer_(buffer), b_(module.getContext()) {}

  void report(const Segment& segment, size_t number) {
    b_.SetInsertPoint(segment.begin);
    llvm::Value* full =
        b_.CreateICmpUGT(load_field(offsetof(TraceBuffer, next)), load_field(offsetof(TraceBuffer, limit)));
    llvm::Instruction* drain = llvm::SplitBlockAndInsertIfThen(full, segment.begin, false);
    b_.SetInsertPoint(drain);
    b_.CreateCall(llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false),
                  load_field(offsetof(TraceBuffer, drain)), {field(0)});
    b_.SetInsertPoint(segment.begin);
    llvm::Value* place = load_field(offsetof(TraceBuffer, next));
    b_.CreateAlignedStore(b_.getInt64(number), place, llvm::Align(kWord));
    uint64_t words = 1;
    for (const AccessPlace& access : segment.accesses) {
      b_.SetInsertPoint(access.at);
      for (unsigned lane = 0; lane < access.lanes; ++lane) {
        llvm::Value* address = access.lanes == 1 && !access.address->getType()->isVectorTy()
                                   ? access.address
                                   : b_.CreateExtractElement(access.address, lane);
        b_.CreateAlignedStore(b_.CreatePtrToInt(address, b_.getInt64Ty()), after(place, words++),
                              llvm::Align(kWord));
      }
    }
    b_.SetInsertPoint(llvm::cast<llvm::Instruction>(place)->getNextNode());
    b_.CreateAlignedStore(after(place, words), field(offsetof(TraceBuffer, next)), llvm::Align(kWord));
  }

 private:
  llvm::Value* after(llvm::Value* place, uint64_t words) {
    return b_.CreateGEP(b_.getInt8Ty(), place, b_.getInt64(words * kWord));
  }
  llvm::Value* field(size_t offset) {
    const auto address = reinterpret_cast<uintptr_t>(&buffer_) + offset;
    return llvm::ConstantExpr::getIntToPtr(b_.getInt64(address), b_.getPtrTy());
  }
  llvm::Value* load_field(size_t offset) {
    return b_.CreateAlignedLoad(b_.getPtrTy(), field(offset), llvm::Align(kWord));
  }

  TraceBuffer& buffer_;
  llvm::IRBuilder<> b_;
};

}  // namespace

size_t name_blocks(llvm::Module& module) {
  module.getContext().setDiscardValueNames(false);
  size_t blocks = 0;
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function) block.setName(kBlockPrefix + std::to_string(blocks++));
  return blocks;
}

std::vector<TracedSegment> trace_accesses(llvm::Module& module, TraceBuffer& buffer) {
  // All segments are found before the first report changes a block.
  std::vector<std::vector<Segment>> blocks;
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function) blocks.push_back(segments_of(block, module.getDataLayout()));
  std::vector<TracedSegment> out;
  Reporter reporter(module, buffer);
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (size_t s = 0; s < blocks[b].size(); ++s) {
      reporter.report(blocks[b][s], out.size());
      TracedSegment traced{b, s == 0, {}};
      for (const AccessPlace& access : blocks[b][s].accesses)
        traced.accesses.insert(traced.accesses.end(), access.lanes, {access.kind, access.bytes});
      out.push_back(std::move(traced));
    }
  }
  return out;
}

}  // namespace tensorsmith::codegen
