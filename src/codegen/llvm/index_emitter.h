// Index arithmetic: affine forms with known ranges, computed in the outermost loop where they are
// defined.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/llvm/value_emitter.h"
#include "codegen/next_block.h"

namespace tensorsmith::codegen {

class IndexEmitter {
 public:
  // Scopes and variables of one function. A scope holds the values that depend on the variables of
  // its loop and of the loops around it. They are emitted before an instruction. The outermost
  // scope has no loop.
  struct Scope {
    llvm::Instruction* insert_before = nullptr;
    std::map<std::vector<int64_t>, llvm::Value*> sums;  // keyed by key_of
    std::map<std::vector<int64_t>, const Atom*> atoms;
    std::vector<std::pair<llvm::Value*, int64_t>> multiples;  // multiples of the loop's variable, and their
                                                              // factors
    const Atom* variable = nullptr;                           // variable of the loop
    bool varying_extent = false;
  };
  struct Nest {
    std::vector<Scope> scopes;
    std::unordered_map<const ir::VarNode*, Affine> vars;
  };

  // Evaluates an expression that is no index arithmetic at the insertion point.
  using Evaluate = std::function<Val(const ir::Expr&)>;
  IndexEmitter(EmitContext& context, ValueEmitter& values, Evaluate evaluate)
      : context_(context), values_(values), evaluate_(std::move(evaluate)), b_(context.builder) {}

  Affine index(const ir::Expr& e);
  Affine sum(const Affine& a, const Affine& b, int64_t scale_b);  // a + scale_b * b
  ir::Interval range_of(const Affine& a) const;                   // everything() if a bound is unknown
  // Emits the value in the current function: its uniform part and, if it has any, its lanes.
  Val materialize(const Affine& a);
  llvm::Value* uniform_sum(const Affine& a);
  Val compare(ir::BinaryOp op, const Affine& a, const Affine& b);
  // Returns the address of an element, without its lanes, given the address of element 0. Addresses
  // are shared by base_number, which is not negative and identifies the base within a function.
  llvm::Value* pointer_to(llvm::Type* type, llvm::Value* base, int64_t base_number, const Affine& element);

  // The prefetch of one step of the innermost loop, for the next block that codegen::next_block
  // finds. A fused loop counts as the loops that it was fused from.
  struct Fetch {
    Affine element;
    int64_t elements = 0;  // number of elements from there on
    int64_t block = 0;     // elements of a block
  };
  // `element` is the first one that a step reads, without its lanes.
  std::optional<Fetch> next_block(const Affine& element, const StepReads& step);
  // Returns the distance in elements from this read to that of the next tile, found by
  // codegen::next_tile.
  std::optional<int64_t> next_tile(const Affine& element, int64_t stride) const;

  void bind(const ir::Var& var, Affine value) { nest_.vars[var.get()] = std::move(value); }
  void unbind(const ir::Var& var) { nest_.vars.erase(var.get()); }
  const Affine* find(const ir::Var& var) const;  // null: not bound
  const Affine& value_of(const ir::Var& var) const;

  // Switches to the emission of another function; returns the previous state.
  Nest exchange(Nest nest) { return std::exchange(nest_, std::move(nest)); }
  void open_scope(llvm::Instruction* insert_before);
  void close_scope() { nest_.scopes.pop_back(); }
  // Strength reduction for the loop of the innermost scope: multiples of its variable become
  // induction variables. Called at the end of the body. `before` is the block in front of the loop,
  // and `begin` is the variable's first value.
  void add_up_multiples(llvm::PHINode* variable, llvm::BasicBlock* before, llvm::Value* begin);
  // Notes that the loop of the innermost scope has fewer iterations in some iterations of the loops
  // around it.
  void note_varying_extent() { nest_.scopes.back().varying_extent = true; }
  llvm::Instruction* outermost() const { return nest_.scopes.front().insert_before; }
  // Returns an i64 scalar that the innermost scope defines: the variable of its loop.
  Affine defined_in_scope(llvm::Value* v, ir::Interval range);

 private:
  class Rules;   // divides sums
  class Reader;  // turns expressions into sums
  // The variable of a loop, or the part of a fused loop's variable that stands for one of the
  // original loops.
  struct Digit {
    const Atom* variable = nullptr;
    int64_t divisor = 1, extent = 1;
    bool leading = true;  // not reduced modulo its extent
  };
  Affine value_of(const Digit& digit);
  // The loops around a read, the outermost first. The nest ends at a loop whose extent is not
  // known.
  struct ReadNest {
    std::vector<Digit> digits;
    std::vector<ReadLoop> loops;  // the same loops, as codegen::next_block takes them
    size_t first = 0;             // scope of the first loop
  };
  std::optional<ReadNest> nest_of(const Affine& element) const;
  Affine opaque(const ir::Expr& e);
  Affine extremum(const ir::Expr& e, ir::BinaryOp op, const Affine& a, const Affine& b);
  Affine floor_div(const Affine& a, int64_t divisor);
  Affine floor_mod(const Affine& a, int64_t divisor);
  Affine divided_lanes(const Affine& a, int64_t divisor, const ir::Interval& values);
  Affine divided_atom(const Affine& a, int64_t divisor, bool modulo);
  Affine atom_here(llvm::Value* v, ir::Interval range);
  const Atom* new_atom(llvm::Value* v, int depth, ir::Interval range);
  static void note_digit(Atom& made, const Atom* of, int64_t divisor, bool modulo);
  int depth_needed_by(const ir::Expr& e) const;
  llvm::Value* lane_numbers(int bits) const;
  llvm::Value* multiple(const Atom* atom, int64_t factor);
  Scope& scope(int depth) { return nest_.scopes[depth]; }

  EmitContext& context_;
  ValueEmitter& values_;
  const Evaluate evaluate_;
  llvm::IRBuilder<>& b_;
  Nest nest_;
  std::deque<Atom> atoms_;
};

}  // namespace tensorsmith::codegen
