// Loads and stores: contiguous, strided and scattered, under masks and guards. Knows where each buffer is and what was
// loaded already.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/llvm/index_emitter.h"
#include "ir/stmt.h"

namespace tensorsmith::codegen {

class MemoryEmitter {
 public:
  MemoryEmitter(EmitContext& context, ValueEmitter& values, IndexEmitter& indices,
                const ir::Program& program);

  // Storage of one buffer as the function under emission sees it.
  struct BufferInfo {
    llvm::Value* base = nullptr;
    ir::DType dtype = ir::DType::kF32;
    int64_t elements = 0;
    int id = 0;        // of the buffer, for alias metadata
    int instance = 0;  // of this allocation: unrolled code allocates one buffer several times
    int lanes = 1;     // > 1: allocated inside a vectorized loop, each element is stored once a lane
    bool read_only = false;
    bool in_registers = false;  // promoted, if all of its accesses are plain
    std::vector<int64_t> strides;
  };
  using Buffers = std::unordered_map<const ir::BufferNode*, BufferInfo>;
  enum class Storage { kInput, kOutput, kLocal, kRegisters };
  void declare(const ir::Buffer& buffer, llvm::Value* base, Storage storage);
  void remove(const ir::Buffer& buffer) { buffers_.erase(buffer.get()); }
  bool knows(const ir::Buffer& buffer) const { return buffers_.contains(buffer.get()); }
  const BufferInfo& info_of(const ir::Buffer& buffer) const;
  // For emission of another function; gives what was there.
  Buffers exchange(Buffers buffers) { return std::exchange(buffers_, std::move(buffers)); }

  struct Address {
    const BufferInfo* info = nullptr;
    Affine element;         // flat index of the element, lane expansion included
    bool in_range = false;  // proven for all lanes, active or not
    // Elements before the first and behind the last lane that are there wherever the lanes themselves are.
    int64_t room_before = 0, room_behind = 0;
  };
  Address address_of(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);

  // Where an element is, for instructions that no load or store here stands for.
  llvm::Value* pointer_to(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
    return pointer_to(address_of(buffer, indices));
  }

  // Asks for 0 where the guard is false and, if lanes, in inactive lanes.
  struct ZeroRequest {
    bool lanes = false;
    bool granted = false;
  };
  // What was loaded in the block before and has not changed since is not loaded again.
  Val load(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, ZeroRequest* zero = nullptr);
  Val load_from(const Address& at, ZeroRequest* zero = nullptr);
  // Elements that stand one after the other, as one word of 32 bits; nothing if they do not.
  std::optional<Val> load_word(llvm::ArrayRef<const ir::Load*> parts);
  void store(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, Val value);
  // --- transpose.cc
  // Whether vectors stored at two addresses, one after the other, are neighbouring columns of a matrix.
  static bool are_columns(const Address& first, const Address& second);
  // Stores vectors of 32 bits an element as columns, the first one at an address.
  void store_columns(const Address& first, std::vector<llvm::Value*> columns);
  // --- prefetch.cc
  // What was read of an input since the reads before were taken: pieces at constants beside the terms, which are the same for all.
  struct InputReads {
    const BufferInfo* info = nullptr;
    Affine element;
    std::map<int64_t, int64_t> pieces;  // begin and end; they neither touch nor overlap
    bool alike = true;
  };
  using Reads = std::map<int, InputReads>;  // by instance
  Reads exchange_reads(Reads reads) { return std::exchange(reads_, std::move(reads)); }
  // At the end of the innermost loop's body: fetches what comes next of large inputs, of the next block or of the next tile.
  void prefetch_ahead();
  // What was loaded is to be loaded again: the code before may not have been executed.
  void forget() { loaded_ = {}; }
  // Stores so far, as Plan::steps counts.
  int64_t steps() const { return steps_; }

 private:
  void make_alias_scopes(const ir::Program& program);
  void forget(const BufferInfo& info);
  // Elements at a constant place: the first and their number, which is 0 if there is no such place.
  std::pair<int64_t, int64_t> constant_place(const Address& at) const;
  void remember_constant(const Address& at, const Val& value);
  llvm::Value* load_vector(const Address& at, int64_t lanes, llvm::Value* guard, llvm::Value* mask,
                           llvm::Align align);
  void note_read(const Address& at);
  // The pieces as a step's reads, if they are alike and lie at equal distances.
  static std::optional<StepReads> step_of(const InputReads& reads);
  bool prefetch_next_block(const InputReads& reads, const StepReads& step);
  void prefetch_next_tile(const InputReads& reads, const StepReads& step);
  void prefetch(const BufferInfo& info, const Affine& element);
  bool loads_in_blocks(int64_t stride) const;
  llvm::Value* load_strided(const Address& at, llvm::Value* guard, llvm::Value* mask);
  llvm::Value* load_gather(const Address& at, llvm::Value* mask);
  void store_scatter(const Address& at, llvm::Value* value);
  llvm::Type* type_of(const Address& at) const { return values_.memory_type(at.info->dtype); }
  llvm::Align alignment_of(const Address& at) const;
  static llvm::Align element_alignment(const Address& at);
  // Attaches what is known about aliases: distinct buffers never overlap, and inputs are not written.
  llvm::Instruction* annotate(llvm::Instruction* access, const BufferInfo& info, bool invariant);
  llvm::Value* zero_block(int64_t bytes);
  llvm::Value* pointer_to(const Address& at) { return pointer_to(*at.info, at.element); }
  llvm::Value* pointer_to(const BufferInfo& info, const Affine& element);
  llvm::Value* guarded_pointer(const Address& at, llvm::Value* condition, int64_t size);
  // `lanes` pointers, those beyond the context's as the first.
  llvm::Value* vector_of_pointers(const Address& at, int64_t lanes);

  EmitContext& context_;
  ValueEmitter& values_;
  IndexEmitter& indices_;
  llvm::IRBuilder<>& b_;
  Buffers buffers_;
  int instances_ = 0;
  std::unordered_map<const ir::BufferNode*, int> ids_;
  std::vector<std::pair<llvm::MDNode*, llvm::MDNode*>> alias_metadata_;  // by buffer id: scope, noalias
  // What was loaded in the block under emission, by buffer, address, mask and guard.
  struct Loaded {
    Val value;
    bool zeros = false;  // as asked for
  };
  struct LoadedInBlock {
    llvm::BasicBlock* block = nullptr;
    std::map<std::vector<int64_t>, Loaded> values;
    // Constants stored to local floats, by instance and element: with the number of elements.
    std::map<std::pair<int, int64_t>, std::pair<int64_t, Val>> constants;
  };
  LoadedInBlock loaded_;
  Reads reads_;
  int64_t steps_ = 0;
  int64_t zero_block_bytes_ = 0;
  llvm::GlobalVariable* zero_block_ = nullptr;
};

}  // namespace tensorsmith::codegen
