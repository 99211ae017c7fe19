// Decisions about loops that need a look at the whole program, made before emission.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "ir/stmt.h"

namespace tensorsmith::codegen {

class Plan {
 public:
  // Serial loops over a local buffer are unrolled for registers' sake while its elements (vectors or scalars)
  // are at most vector_registers; more of them would be spilled, by code that is as long.
  Plan(const ir::Program& program, int64_t vector_registers);

  // Stores that the statement executes when everything with a constant extent is unrolled. A vectorized loop
  // counts once for each 16 lanes if its accesses are contiguous, else once a lane. kManySteps at most.
  int64_t steps(const ir::Stmt& s) const { return steps_.at(s.get()); }
  // The loop indexes a small local buffer that lives in registers once all indices are constant.
  bool indexes_registers(const ir::Stmt& loop) const { return register_loops_.contains(loop.get()); }
  // All accesses to the allocated buffer have such indices.
  bool in_registers(const ir::Stmt& allocate) const { return in_registers_.contains(allocate.get()); }
  // All lanes can be executed at once with the result of serial execution.
  bool vectorizable(const ir::Stmt& loop) const { return vectorizable_.contains(loop.get()); }
  bool contains_parallel(const ir::Stmt& s) const { return with_parallel_.contains(s.get()); }

  static constexpr int64_t kManySteps = int64_t{1} << 40;
  // A statement with more steps is never unrolled further.
  static constexpr int64_t kMaxUnrolledSteps = 4096;
  // A program that has emitted more is not unrolled any more: code generation takes more than linear time.
  static constexpr int64_t kMaxProgramSteps = 8192;
  // A loop with more steps stays one, where as many are asked for (auto_unroll_max_step; 0: nothing is): loops of
  // few stores are unrolled without being asked to.
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
