// Instructions of MetaSchedule, and the random variables that they bind.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "record/metaschedule/factored_axes.h"
#include "record/metaschedule/instruction.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::record {

// Writes what the steps do to definitions when it is given them, and all loops in finish(), from the
// schedule that the steps make: readers before what is computed inside their loops, because ComputeAt
// gives a block new loops.
class InstructionWriter {
 public:
  InstructionWriter(sched::Schedule fresh, target::DeviceKind device);

  Status add(const sched::Step& step);
  Result<std::vector<MetaScheduleInstruction>> finish() &&;

 private:
  // The block that writes a tensor.
  struct Block {
    std::string variable;
    ir::MemoryScope scope = ir::MemoryScope::kGlobal;
    // Its loops as it was made; ComputeAt makes one for each of its axes, in their order.
    FactoredBlock place;
  };
  // The loops of a stage, as they are in TVM so far.
  struct Nest {
    std::vector<sched::IteratorId> order;                 // outer to inner
    std::unordered_map<uint32_t, std::string> variables;  // by place of the iterator
  };
  using Values = std::vector<MetaScheduleValue>;

  Status rewrite(const sched::ComputeInline& step);
  Status rewrite(const sched::CacheRead& step);
  Status rewrite(const sched::CacheWrite& step);
  Status rewrite(const sched::Rfactor& step);
  Status rewrite(const sched::PackLayout& step);
  template <class Other>
  Status rewrite(const Other& step);

  Status write_loops(sched::StageId s, const sched::Bounds& bounds);
  Status change_loops(const sched::Stage& stage, const IdVector<sched::IteratorId, int64_t>& extents,
                      Nest& nest);
  Status annotate(sched::StageId s, const Nest& nest);
  void unroll(sched::StageId s, const Nest& nest);
  bool may_decompose(sched::StageId s) const;
  void decompose(sched::StageId s, const Nest& nest);
  Nest get_loops(const Block& block, size_t around, const std::vector<size_t>& axes);
  void reorder(Nest& nest, const std::vector<sched::IteratorId>& order);
  void split(const sched::SplitRelation& relation, const IdVector<sched::IteratorId, int64_t>& extents,
             Nest& nest);
  void fuse(const sched::FuseRelation& relation, Nest& nest);
  size_t loops_around(sched::StageId s) const;

  const sched::Schedule& schedule() const { return builder_.schedule(); }
  const sched::Stage& stage(sched::StageId s) const { return schedule().stages[s]; }
  sched::StageId stage_at(int position) const { return sched::StageId(static_cast<size_t>(position)); }
  bool is_stage(int position) const;
  Block& block_of(sched::StageId s) { return blocks_.at(stage(s).op->output().get()); }
  Block new_block(const sched::Stage& stage, std::string variable, ir::MemoryScope scope) const;
  std::string variable(char kind) { return kind + std::to_string(next_++); }
  void write(std::string kind, Values inputs, Values attributes, std::vector<std::string> outputs = {});

  sched::ScheduleBuilder builder_;
  target::DeviceKind device_;
  std::unordered_map<const ir::BufferNode*, Block> blocks_;
  std::unordered_map<uint32_t, Nest> nests_;  // by place of the stage
  std::vector<MetaScheduleInstruction> out_;
  int next_ = 0;
};

}  // namespace tensorsmith::record
