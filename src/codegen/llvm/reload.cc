#include "codegen/llvm/reload.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace tensorsmith::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

constexpr int kNever = std::numeric_limits<int>::max();

// A vector that is not used within kSoon instructions, which are some steps of a product, may not
// take the last kSpare registers: copies and intermediate values may need them.
constexpr int kSoon = 12;
constexpr int kSpare = 3;
// Number of loads that LLVM clusters with a load from the same base for the sake of caches
// (X86InstrInfo::shouldScheduleLoadsNear).
constexpr int kClustered = 3;
// Vectors that stay in registers even if other values take all of them: both operands of the
// products.
constexpr int kLeast = 2;

bool writes(const Instruction& instruction) {
  const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (intrinsic != nullptr && intrinsic->getIntrinsicID() == llvm::Intrinsic::prefetch) return false;
  return instruction.mayWriteToMemory();
}

// Returns whether the metadata of the two show that they access different buffers. An access lists
// the scope of its own buffer and the scopes of all others.
bool apart(const Instruction& write, const llvm::LoadInst& load) {
  const llvm::MDNode* scopes = write.getMetadata(llvm::LLVMContext::MD_alias_scope);
  const llvm::MDNode* others = load.getMetadata(llvm::LLVMContext::MD_noalias);
  if (scopes == nullptr || others == nullptr || scopes->getNumOperands() == 0) return false;
  return std::all_of(scopes->op_begin(), scopes->op_end(), [&](const llvm::MDOperand& scope) {
    return std::find(others->op_begin(), others->op_end(), scope) != others->op_end();
  });
}

// Returns the only operand that is not a constant, if there is exactly one and it is an
// instruction.
Instruction* only_operand(const Instruction& instruction) {
  Instruction* found = nullptr;
  for (Value* operand : instruction.operands()) {
    if (llvm::isa<llvm::Constant>(operand)) continue;
    if (found != nullptr) return nullptr;
    found = llvm::dyn_cast<Instruction>(operand);
    if (found == nullptr) return nullptr;
  }
  return found;
}

// Returns the load that the value comes from, with at most a broadcast to all lanes in between.
llvm::LoadInst* source_of(Instruction* value) {
  while (value != nullptr) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(value)) return load->isSimple() ? load : nullptr;
    if (!llvm::isa<llvm::ShuffleVectorInst, llvm::InsertElementInst, llvm::BitCastInst>(value))
      return nullptr;
    value = only_operand(*value);
  }
  return nullptr;
}

// A vector that is loaded or broadcast from memory, with the positions of its uses in one block.
struct Reloadable {
  Instruction* value;
  llvm::SmallVector<int, 8> uses;
  size_t next = 0;
  Instruction* held_by = nullptr;  // the instruction that holds it now, or null

  int next_use() const { return next < uses.size() ? uses[next] : kNever; }
};

// Instructions of a block by position.
struct BlockCode {
  explicit BlockCode(BasicBlock& block) {
    for (Instruction& instruction : block) {
      positions[&instruction] = instructions.size();
      if (writes(instruction)) written.push_back(instructions.size());
      instructions.push_back(&instruction);
    }
  }

  llvm::SmallVector<int, 8> uses_of(const Value& value) const {
    llvm::SmallVector<int, 8> uses;
    for (const llvm::User* user : value.users()) {
      const auto it = positions.find(user);
      if (it != positions.end() && !llvm::isa<llvm::PHINode>(user)) uses.push_back(it->second);
    }
    std::sort(uses.begin(), uses.end());
    uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
    return uses;
  }

  // Returns whether the loaded memory may be written at positions in [from, to).
  bool writes_between(const llvm::LoadInst& load, int from, int to) const {
    return std::any_of(std::lower_bound(written.begin(), written.end(), from),
                       std::lower_bound(written.begin(), written.end(), to),
                       [&](int at) { return !apart(*instructions[at], load); });
  }

  std::vector<Instruction*> instructions;
  llvm::DenseMap<const Value*, int> positions;
  std::vector<int> written;  // positions of instructions that write to memory
};

// Number of registers in use after each instruction of a block.
class Taken {
 public:
  explicit Taken(size_t instructions) : change_(instructions + 1, 0) {}
  void add(int from, int to, int registers) {
    change_[from] += registers;
    change_[to] -= registers;
  }
  std::vector<int> sums() const {
    std::vector<int> sums(change_.size());
    std::partial_sum(change_.begin(), change_.end(), sums.begin());
    return sums;
  }

 private:
  std::vector<int> change_;
};

class Reloads {
 public:
  Reloads(llvm::Function& function, const RegisterFile& file) : function_(function), file_(file) {}

  void run() {
    find_vectors();
    if (reloadable_.empty()) return;
    find_liveness();
    for (BasicBlock& block : function_) relieve(block);
    llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(unused_);
  }

 private:
  // Returns the vector registers that a value takes; 0 for scalars, masks, and the first step of a
  // broadcast.
  int registers_of(const Instruction* value) const {
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    if (type == nullptr || type->getElementType()->isIntegerTy(1)) return 0;
    if (llvm::isa<llvm::InsertElementInst>(value) && value->hasOneUse() &&
        llvm::isa<llvm::ShuffleVectorInst>(*value->user_begin()))
      return 0;
    const int bytes = type->getPrimitiveSizeInBits() / 8;
    return bytes < 8 ? 0 : (bytes + file_.bytes - 1) / file_.bytes;
  }

  // Loads that may cross a cache line cost more than loads of spilled vectors, which are aligned.
  bool crosses_lines(const llvm::LoadInst& load) const {
    const auto bytes = std::min<uint64_t>(load.getType()->getPrimitiveSizeInBits() / 8, file_.bytes);
    return load.getType()->isVectorTy() && load.getAlign().value() < bytes;
  }

  void find_vectors() {
    for (BasicBlock& block : function_)
      for (Instruction& instruction : block) {
        if (registers_of(&instruction) == 0) continue;
        vectors_.push_back(&instruction);
        const llvm::LoadInst* load = source_of(&instruction);
        if (load == nullptr || crosses_lines(*load)) continue;
        reloadable_.insert(&instruction);
        if (load->hasMetadata(llvm::LLVMContext::MD_invariant_load)) invariant_.insert(&instruction);
      }
  }

  // Finds the blocks that vectors are live into and out of, and the vectors whose sources are not
  // written while they are live.
  void find_liveness() {
    llvm::DenseMap<const BasicBlock*, std::vector<const Instruction*>> written;
    for (BasicBlock& block : function_)
      for (Instruction& instruction : block)
        if (writes(instruction)) written[&block].push_back(&instruction);
    for (Instruction* value : vectors_) {
      llvm::SmallVector<BasicBlock*, 8> work;
      llvm::SmallPtrSet<BasicBlock*, 8> into;
      const auto live_into = [&](BasicBlock* block) {
        if (block != value->getParent() && into.insert(block).second) work.push_back(block);
      };
      const auto live_out_of = [&](BasicBlock* block) {
        live_out_[block].insert(value);
        live_into(block);
      };
      for (const llvm::Use& use : value->uses()) {
        auto* user = llvm::cast<Instruction>(use.getUser());
        if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(user)) {
          live_out_of(phi->getIncomingBlock(use));
        } else {
          live_into(user->getParent());
        }
      }
      while (!work.empty()) {
        BasicBlock* block = work.pop_back_val();
        live_in_[block].push_back(value);
        for (BasicBlock* before : llvm::predecessors(block)) live_out_of(before);
      }
      if (into.empty() || !reloadable_.contains(value)) continue;
      const llvm::LoadInst* load = source_of(value);
      if (load->getParent() != value->getParent()) continue;
      const auto harmless = [&](const Instruction* write) { return apart(*write, *load); };
      bool unwritten = llvm::all_of(written[load->getParent()], [&](const Instruction* write) {
        return write->comesBefore(load) || harmless(write);
      });
      for (const BasicBlock* block : into) unwritten = unwritten && llvm::all_of(written[block], harmless);
      if (unwritten) invariant_.insert(value);
    }
  }

  void relieve(BasicBlock& block) {
    const BlockCode code(block);
    const int end = code.instructions.size();
    Taken by_all(code.instructions.size()), by_others(code.instructions.size());
    std::vector<Reloadable> reloadable;
    const auto add = [&](Instruction* value, bool enters) {
      const int size = registers_of(value);
      if (size == 0) return;
      auto uses = code.uses_of(*value);
      const bool candidate = reloadable_.contains(value);
      if (enters && candidate && uses.empty()) return;  // may be reloaded after this block
      const int from = enters ? 0 : code.positions.lookup(value);
      const bool leaves = live_out_[&block].contains(value);
      const int to = leaves ? end : uses.empty() ? from : uses.back();
      by_all.add(from, to, size);
      const bool unchanged = candidate && !uses.empty() &&
                             (invariant_.contains(value) || unchanged_until(code, value, uses.back()));
      if (unchanged && (enters || !leaves)) {
        reloadable.push_back({value, std::move(uses)});
      } else {
        by_others.add(from, to, size);
      }
    };
    for (Instruction* value : live_in_[&block]) add(value, true);
    for (Instruction* value : code.instructions) add(value, false);
    const std::vector<int> all = by_all.sums();
    const int most = *std::max_element(all.begin(), all.end());
    if (most > file_.registers) reload(code, by_others.sums(), reloadable);
    if (most + kClustered > file_.registers) keep_steps_apart(BlockCode(block));
  }

  // Returns whether the value's source is loaded in this block and is not written until the value's
  // last use.
  static bool unchanged_until(const BlockCode& code, Instruction* value, int last) {
    const llvm::LoadInst* load = source_of(value);
    const auto at = code.positions.find(load);
    return at != code.positions.end() && !code.writes_between(*load, at->second, last);
  }

  // Inserts a fence where the vectors of an unrolled loop's next step are loaded. Without it,
  // instruction selection would move up to kClustered loads to the first one from the same base,
  // several steps ahead.
  void keep_steps_apart(const BlockCode& code) {
    int first_end = kNever;  // last use of the vector of this step that ends first
    llvm::SmallVector<Instruction*, 16> steps;
    for (size_t i = 0; i < code.instructions.size(); ++i) {
      Instruction* load = code.instructions[i];
      // A vector with a single use becomes a memory operand.
      if (!llvm::isa<llvm::LoadInst>(load) || registers_of(load) == 0 || load->hasOneUse()) continue;
      const auto uses = code.uses_of(*load);
      if (uses.empty()) continue;
      if (first_end < static_cast<int>(i)) {
        steps.push_back(first_of_step(code, i));
        first_end = kNever;
      }
      first_end = std::min(first_end, uses.back());
    }
    if (steps.empty()) return;
    // Fences do not stop invariant loads.
    for (Instruction* instruction : code.instructions)
      if (llvm::isa<llvm::LoadInst>(instruction))
        instruction->setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
    for (Instruction* step : steps) fence_before(*step);
  }

  // Inserts a single-thread fence. It emits no instruction, but instruction selection moves no load
  // across it and does not merge equal loads on its two sides.
  static void fence_before(Instruction& instruction) {
    new llvm::FenceInst(instruction.getContext(), llvm::AtomicOrdering::AcquireRelease,
                        llvm::SyncScope::SingleThread, instruction.getIterator());
  }

  // Returns the first of the loads before position i that only address computations and broadcasts
  // separate from it.
  static Instruction* first_of_step(const BlockCode& code, size_t i) {
    Instruction* first = code.instructions[i];
    while (i-- > 0) {
      Instruction* before = code.instructions[i];
      if (llvm::isa<llvm::LoadInst>(before)) {
        first = before;
      } else if (!llvm::isa<llvm::GetElementPtrInst, llvm::InsertElementInst>(before) &&
                 !llvm::isa_and_nonnull<llvm::LoadInst>(source_of(before))) {
        break;
      }
    }
    return first;
  }

  // `others` is the number of registers in use after each instruction by values that cannot be
  // reloaded.
  void reload(const BlockCode& code, const std::vector<int>& others, std::vector<Reloadable>& values) {
    const size_t end = code.instructions.size();
    std::vector<llvm::SmallVector<Reloadable*, 2>> defined(end), used(end);
    for (Reloadable& v : values) {
      if (const auto it = code.positions.find(v.value); it != code.positions.end())
        defined[it->second].push_back(&v);
      for (const int at : v.uses) used[at].push_back(&v);
    }
    llvm::SmallVector<Reloadable*, 32> held;
    int held_registers = 0;
    llvm::SmallPtrSet<Reloadable*, 32> seen;  // values that instruction selection has seen since the last
                                              // fence
    const auto hold = [&](Reloadable* v, Instruction* by) {
      v->held_by = by;
      held.push_back(v);
      held_registers += registers_of(v->value);
      seen.insert(v);
    };
    const auto drop = [&](Reloadable** at) {
      (*at)->held_by = nullptr;
      held_registers -= registers_of((*at)->value);
      held.erase(at);
    };
    const auto sooner = [](const Reloadable* a, const Reloadable* b) {
      return a->next_use() < b->next_use();
    };
    for (size_t i = 0; i < end; ++i) {
      Instruction& user = *code.instructions[i];
      for (Reloadable* v : used[i]) {
        if (v->held_by == nullptr) {
          const bool again = seen.contains(v);
          if (again) seen.clear();
          hold(v, copy_before(v->value, user, again));
          unused_.push_back(v->value);
        }
        if (v->held_by != v->value) user.replaceUsesOfWith(v->value, v->held_by);
        ++v->next;
      }
      for (Reloadable* v : defined[i]) hold(v, v->value);
      const int room = std::max(file_.registers - others[i], kLeast);
      while (!held.empty()) {
        Reloadable** furthest = std::max_element(held.begin(), held.end(), sooner);
        const int wait = (*furthest)->next_use() - static_cast<int>(i);
        if ((*furthest)->next_use() != kNever && held_registers <= (wait > kSoon ? room - kSpare : room))
          break;
        drop(furthest);
      }
    }
  }

  // Emits the value again. A constant address computation is copied, too: instruction selection
  // folds it into the operand only if it is in the same block. If `fenced`, a fence keeps
  // instruction selection from merging the copy with an equal value that it has seen.
  Instruction* copy_before(Instruction* value, Instruction& where, bool fenced) {
    llvm::SmallVector<Instruction*, 4> chain{value};
    while (!llvm::isa<llvm::LoadInst>(chain.back())) chain.push_back(only_operand(*chain.back()));
    auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(
        llvm::cast<llvm::LoadInst>(chain.back())->getPointerOperand());
    if (address != nullptr && address->hasAllConstantIndices()) chain.push_back(address);
    Instruction* made = nullptr;
    for (size_t i = chain.size(); i-- > 0;) {
      Instruction* copy = chain[i]->clone();
      copy->insertBefore(&where);
      if (made != nullptr) {
        copy->replaceUsesOfWith(chain[i + 1], made);
      } else if (fenced) {
        fence_before(*copy);
      }
      // Without this, machine passes would merge equal loads of invariant memory.
      copy->setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
      made = copy;
    }
    return made;
  }

  llvm::Function& function_;
  const RegisterFile file_;
  std::vector<Instruction*> vectors_;
  llvm::DenseSet<const Instruction*> reloadable_;
  llvm::DenseSet<const Instruction*> invariant_;  // those whose source is not written while they are live
  llvm::DenseMap<const BasicBlock*, std::vector<Instruction*>> live_in_;
  llvm::DenseMap<const BasicBlock*, llvm::DenseSet<const Instruction*>> live_out_;
  llvm::SmallVector<llvm::WeakTrackingVH, 0> unused_;
};

}  // namespace

void reload_instead_of_spill(llvm::Function& function, const RegisterFile& file) {
  Reloads(function, file).run();
}

}  // namespace tensorsmith::codegen
