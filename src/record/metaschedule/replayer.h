// The first half of a replay: the instructions' variables, and what they do to definitions.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/metaschedule/loop_changes.h"
#include "record/metaschedule/replay.h"

namespace tensorsmith::record {

// Executes one instruction after the other. Definitions are changed at once, loops in finish().
class MetaScheduleReplayer {
 public:
  MetaScheduleReplayer(sched::Schedule fresh, const std::vector<TirBlock>& blocks);

  Status execute(size_t number, const MetaScheduleInstruction& instruction);
  // Applies the changes of loops. `name_of` gives the place of an error, by instruction.
  Result<MetaScheduleProgram> finish(const std::vector<MetaScheduleInstruction>& instructions) &&;

 private:
  using Instruction = MetaScheduleInstruction;
  using Value = MetaScheduleValue;
  // The value of a random variable.
  struct Variable {
    // kNowhere: where SampleComputeLocation says that a block stays as it is, kInline: is inlined.
    enum class Kind : uint8_t { kBlock, kLoop, kNumber, kNowhere, kInline };
    Kind kind = Kind::kNumber;
    BlockTreeId node;
    int64_t number = 0;
  };
  struct Block {
    std::string name;
    ir::Buffer output;
    std::vector<size_t> axes = {};  // in the order of TVM's block, where that is not ours
  };
  struct Change {
    size_t instruction = 0;
    // The blocks whose loops are changed; a later compute_at of one of them makes new loops instead.
    BlockTreeId block;
    LoopChange change;
  };
  using Handler = Status (MetaScheduleReplayer::*)(const Instruction&);
  struct Row {
    std::string_view kind;
    Handler run;
  };
  static const Row kRows[];

  // Arguments of instructions.
  Result<Variable> variable(const Value& name, Variable::Kind kind, std::string_view what) const;
  Result<BlockTreeId> block(const Instruction& i, size_t input) const;
  Result<BlockTreeId> loop(const Instruction& i, size_t input) const;
  Result<BlockTreeId> loop_of(const Value& name) const;
  Result<int64_t> number(const Value& value) const;
  Result<int64_t> attribute(const Instruction& i, size_t place) const;
  Result<std::string> text_attribute(const Instruction& i, size_t place) const;
  Status bind(const Instruction& i, const std::vector<Variable>& values);
  Status bind_nodes(const Instruction& i, Variable::Kind kind, const std::vector<BlockTreeId>& nodes);

  // Blocks and their stages.
  BlockTreeId add_block(std::string name, ir::Buffer output, size_t position);
  // Puts a block that is nowhere at the root, inside a loop for each axis, outer to inner as given.
  void place_at_root(BlockTreeId block, size_t position, std::vector<size_t> axes);
  LoopChanger::Outputs outputs() const;
  sched::StageId stage_of(BlockTreeId block) const;
  const sched::Stage& stage(BlockTreeId block) const { return builder_.schedule().stages[stage_of(block)]; }
  int position_of(BlockTreeId block) const { return static_cast<int>(stage_of(block).place()); }
  std::vector<BlockTreeId> producers_of(BlockTreeId block) const;
  std::vector<BlockTreeId> consumers_of(BlockTreeId block) const;
  void change(BlockTreeId block, LoopChange change) { changes_.push_back({now_, block, std::move(change)}); }
  Status take_out(BlockTreeId block);
  Status inline_block(BlockTreeId block);
  Result<std::vector<BlockTreeId>> move(BlockTreeId block, BlockTreeId loop, size_t position);

  // Handlers of instructions.
  Status nothing(const Instruction& i);
  Status get_block(const Instruction& i);
  Status get_loops(const Instruction& i);
  Status get_child_blocks(const Instruction& i);
  Status get_producers(const Instruction& i);
  Status get_consumers(const Instruction& i);
  Status sample_tile(const Instruction& i);
  Status sample_categorical(const Instruction& i);
  Status sample_location(const Instruction& i);
  Status split(const Instruction& i);
  Status fuse(const Instruction& i);
  Status reorder(const Instruction& i);
  Status bind_loop(const Instruction& i);
  Status vectorize(const Instruction& i);
  Status unroll(const Instruction& i);
  Status parallel(const Instruction& i);
  Status annotate(const Instruction& i);
  Status cache_read(const Instruction& i);
  Status cache_write(const Instruction& i);
  Status compute_at(const Instruction& i);
  Status reverse_compute_at(const Instruction& i);
  Status compute_inline(const Instruction& i);
  Status reverse_compute_inline(const Instruction& i);
  Status set_scope(const Instruction& i);
  Status decompose_reduction(const Instruction& i);
  Status rfactor(const Instruction& i);
  Status storage_align(const Instruction& i);
  Result<sched::Rfactor> split_for_rfactor(BlockTreeId block, BlockTreeId loop);
  Status annotate_loop(const Instruction& i, sched::Annotation annotation);

  sched::ScheduleBuilder builder_;
  BlockTree tree_;
  std::unordered_map<uint32_t, Block> blocks_;             // by place of the block's id
  std::unordered_map<uint32_t, BlockTreeId> loop_owners_;  // the block whose loops were changed to the loop
  std::unordered_map<std::string, Variable> variables_;
  std::vector<Change> changes_;
  std::vector<std::pair<BlockTreeId, ir::MemoryScope>> scopes_;  // asked for
  BlockTreeId root_block_;
  size_t now_ = 0;
};

}  // namespace tensorsmith::record
