// Decisions about loops that depend on the whole program and are made before emission.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "ir/stmt.h"

namespace tensorsmith::codegen {

class LoopDecisions {
 public:
  // A serial loop over a local buffer is unrolled to keep the buffer in registers if the buffer has
  // at most vector_registers elements (vectors or scalars). A larger one would be spilled, with
  // just as much code.
  LoopDecisions(const ir::Program& program, int64_t vector_registers);

  // Number of stores that the statement executes when all loops with constant extents are unrolled,
  // at most kManySteps. A vectorized loop counts once per 16 lanes if its accesses are contiguous,
  // else once per lane.
  int64_t steps(const ir::Stmt& s) const { return steps_.at(s.get()); }
  // Returns whether the loop indexes a small local buffer that lives in registers once all indices
  // are constant.
  bool indexes_registers(const ir::Stmt& loop) const { return register_loops_.contains(loop.get()); }
  // Returns whether all accesses to the allocated buffer have constant indices once these loops are
  // unrolled.
  bool in_registers(const ir::Stmt& allocate) const { return in_registers_.contains(allocate.get()); }
  // Returns whether executing all lanes at once gives the result of serial execution.
  bool vectorizable(const ir::Stmt& loop) const { return vectorizable_.contains(loop.get()); }
  bool contains_parallel(const ir::Stmt& s) const { return with_parallel_.contains(s.get()); }

  static constexpr int64_t kManySteps = int64_t{1} << 40;
  // A statement with more steps is never unrolled further.
  static constexpr int64_t kMaxUnrolledSteps = 4096;
  // Once a program has emitted more steps than this, no more loops are unrolled: the time of code
  // generation grows faster than linearly.
  static constexpr int64_t kMaxProgramSteps = 8192;
  // Most steps of a loop that is unrolled if the schedule asks for `asked` steps
  // (auto_unroll_max_step; 0: not asked for). Loops of few stores are always unrolled.
  static constexpr int64_t unroll_limit(int64_t asked) {
    return asked < 8 ? 8 : asked < kMaxUnrolledSteps ? asked : kMaxUnrolledSteps;
  }

 private:
  int64_t scan(const ir::Stmt& s);
  void find_register_loops(const ir::Stmt& allocate);
  static bool lanes_are_independent(const ir::For& loop);
  static bool is_contiguous(const ir::For& loop);

  const int64_t vector_registers_;
  std::unordered_map<const ir::StmtNode*, int64_t> steps_;
  std::unordered_set<const ir::StmtNode*> register_loops_;
  std::unordered_set<const ir::StmtNode*> in_registers_;
  std::unordered_set<const ir::StmtNode*> vectorizable_;
  std::unordered_set<const ir::StmtNode*> with_parallel_;
};

}  // namespace tensorsmith::codegen
