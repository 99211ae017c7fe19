// Emits loads and stores: contiguous, strided and scattered, under masks and guards. Keeps track of
// where each buffer is and which values have been loaded.
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
    int id = 0;        // number of the buffer, for alias metadata
    int instance = 0;  // number of this allocation: unrolled code allocates a buffer several times
    int lanes = 1;     // > 1: allocated inside a vectorized loop, with one copy of each element per lane
    bool read_only = false;
    bool in_registers = false;  // promoted to registers, if all of its accesses are plain
    std::vector<int64_t> strides;
  };
  using Buffers = std::unordered_map<const ir::BufferNode*, BufferInfo>;
  enum class Storage { kInput, kOutput, kLocal, kRegisters };
  void declare(const ir::Buffer& buffer, llvm::Value* base, Storage storage);
  void remove(const ir::Buffer& buffer) { buffers_.erase(buffer.get()); }
  bool knows(const ir::Buffer& buffer) const { return buffers_.contains(buffer.get()); }
  const BufferInfo& info_of(const ir::Buffer& buffer) const;
  // Switches to the emission of another function; returns the previous buffers.
  Buffers exchange(Buffers buffers) { return std::exchange(buffers_, std::move(buffers)); }

  struct Address {
    const BufferInfo* info = nullptr;
    Affine element;         // flat index of the element, lane expansion included
    bool in_range = false;  // proven for all lanes, active or not
    // Elements before the first and behind the last lane that are valid wherever the lanes
    // themselves are.
    int64_t room_before = 0, room_behind = 0;
  };
  Address address_of(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);

  // Returns the address of an element, for instructions that are emitted elsewhere.
  llvm::Value* pointer_to(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
    return pointer_to(address_of(buffer, indices));
  }

  // Requests the value 0 where the guard is false and, if `lanes`, in inactive lanes. `granted`
  // says whether the load does so.
  struct ZeroRequest {
    bool lanes = false;
    bool granted = false;
  };
  // Loads elements. A value that was loaded in the same block and has not changed since is reused.
  Val load(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, ZeroRequest* zero = nullptr);
  Val load_from(const Address& at, ZeroRequest* zero = nullptr);
  // Loads consecutive elements as one word of 32 bits; returns nothing if they are not consecutive.
  std::optional<Val> load_word(llvm::ArrayRef<const ir::Load*> parts);
  void store(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, Val value);
  // --- transpose.cc
  // Returns whether vectors stored at the two addresses are adjacent columns of a matrix.
  static bool are_columns(const Address& first, const Address& second);
  // Stores vectors of 32-bit elements as columns, the first one at the given address.
  void store_columns(const Address& first, std::vector<llvm::Value*> columns);
  // --- prefetch.cc
  // Reads of an input since the reads were last exchanged. All reads have the same terms and differ
  // by constants, which form `pieces`.
  struct InputReads {
    const BufferInfo* info = nullptr;
    Affine element;
    std::map<int64_t, int64_t> pieces;  // begin and end; they neither touch nor overlap
    bool alike = true;
  };
  using Reads = std::map<int, InputReads>;  // by the buffer's instance
  Reads exchange_reads(Reads reads) { return std::exchange(reads_, std::move(reads)); }
  // Called at the end of the innermost loop's body: prefetches for reads of large inputs, either
  // from the next block or from the next tile.
  void prefetch_ahead();
  // Forgets all loaded values: the code that loaded them may not have been executed.
  void forget() { loaded_ = {}; }
  // Number of stores emitted so far, counted as in LoopDecisions::steps.
  int64_t steps() const { return steps_; }

 private:
  void make_alias_scopes(const ir::Program& program);
  void forget(const BufferInfo& info);
  // Returns the first element and the number of elements of an access with constant indices; the
  // number is 0 if they are not constant.
  std::pair<int64_t, int64_t> constant_place(const Address& at) const;
  void remember_constant(const Address& at, const Val& value);
  llvm::Value* load_vector(const Address& at, int64_t lanes, llvm::Value* guard, llvm::Value* mask,
                           llvm::Align align);
  llvm::Value* load_active_parts(const Address& at, int64_t lanes, llvm::Value* guard, llvm::Value* mask,
                                 llvm::Align align);
  void note_read(const Address& at);
  // Returns the pieces as the reads of a step, if they have the same length and equal distances.
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
  // Attaches alias metadata: distinct buffers never overlap, and inputs are not written.
  llvm::Instruction* annotate(llvm::Instruction* access, const BufferInfo& info, bool invariant);
  llvm::Value* zero_block(int64_t bytes);
  llvm::Value* pointer_to(const Address& at) { return pointer_to(*at.info, at.element); }
  llvm::Value* pointer_to(const BufferInfo& info, const Affine& element);
  llvm::Value* guarded_pointer(const Address& at, llvm::Value* condition, int64_t size);
  // Returns `lanes` pointers; those beyond the context's lanes equal the first.
  llvm::Value* vector_of_pointers(const Address& at, int64_t lanes);

  EmitContext& context_;
  ValueEmitter& values_;
  IndexEmitter& indices_;
  llvm::IRBuilder<>& b_;
  Buffers buffers_;
  int instances_ = 0;
  std::unordered_map<const ir::BufferNode*, int> ids_;
  std::vector<std::pair<llvm::MDNode*, llvm::MDNode*>> alias_metadata_;  // by buffer id: scope, noalias
  // Values loaded in the block under emission, by buffer, address, mask and guard.
  struct Loaded {
    Val value;
    bool zeros = false;  // zeros were granted as requested
  };
  struct LoadedInBlock {
    llvm::BasicBlock* block = nullptr;
    std::map<std::vector<int64_t>, Loaded> values;
    // Constants stored to local float buffers by instance and first element, with the number of
    // elements.
    std::map<std::pair<int, int64_t>, std::pair<int64_t, Val>> constants;
  };
  LoadedInBlock loaded_;
  Reads reads_;
  int64_t steps_ = 0;
  int64_t zero_block_bytes_ = 0;
  llvm::GlobalVariable* zero_block_ = nullptr;
};

}  // namespace tensorsmith::codegen
