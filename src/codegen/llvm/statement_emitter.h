// Loop program -> LLVM IR. Internal to this directory: only the .cc files in it use this header.
//
// The emitter does itself what optimizer passes would do at a higher cost: it unrolls, folds index
// arithmetic into affine forms with known ranges, places loop-invariant address arithmetic in the
// outermost loop where it is defined, and turns vectorized loops into vector types. The passes then
// promote local buffers to registers, remove common subexpressions and hoist loads.
//
// It consists of parts, each of which has its own state and uses only the preceding ones: values,
// indices (loop nest and variables), memory (buffers and loaded values), expressions, and here
// statements and functions.
#pragma once

#include <llvm/IR/Module.h>

#include <functional>
#include <unordered_map>

#include "codegen/backend.h"
#include "codegen/llvm/expression_emitter.h"
#include "codegen/llvm/extremum_regions.h"
#include "codegen/llvm/nan_detector.h"
#include "codegen/loop_decisions.h"

namespace tensorsmith::codegen {

class StatementEmitter {
 public:
  StatementEmitter(const ir::Program& program, const TargetTraits& traits, const CodegenOptions& options,
                   llvm::Module& module);
  // Adds the kernel function to the module.
  void run();
  int64_t shared_workspace_bytes() const { return shared_bytes_; }
  int64_t thread_workspace_bytes() const { return thread_bytes_; }
  bool uses_matrix_units() const { return uses_matrix_units_; }

 private:
  // --- function.cc
  void begin_function(llvm::Function* function);
  void end_function();
  void export_info();
  llvm::Value* load_field(llvm::Value* base, int64_t offset, llvm::Type* type, int64_t align_of_pointee);

  // --- stmt.cc
  void emit(const ir::Stmt& s);
  void emit_once(const ir::Stmt& s);
  void emit_for(const ir::Stmt& s, const ir::For& loop);
  void emit_serial(const ir::For& loop);
  // Emits for v in [begin, end): body. If `nonempty`, begin < end is known.
  void emit_loop(const ir::Var& var, llvm::Value* begin, llvm::Value* end, ir::Interval range, bool nonempty,
                 const std::function<void(const Affine&)>& body);
  void emit_unrolled(const ir::For& loop, int64_t extent);
  void emit_vectorized(const ir::For& loop, int64_t extent);
  // Emits the unrolled loop around a vectorized one if its stores run across rows; otherwise emits
  // nothing and returns false.
  bool emit_transposed(const ir::For& loop, int64_t extent);
  void emit_if(const ir::IfThenElse& branch);
  void emit_allocate(const ir::Stmt& s, const ir::Allocate& allocate);

  // --- matrix.cc
  using TileShapes = std::vector<std::pair<int64_t, int64_t>>;  // rows and 32-bit columns
  // Emits the nest of loops that begins with this one if matrix units can compute it; otherwise
  // emits nothing and returns false.
  bool emit_matrix(const ir::For& loop);
  // The first tile shapes of a function are configured once, at its beginning.
  void with_tiles(const TileShapes& shapes, const std::function<void()>& emit_products);
  void configure_tiles(const TileShapes& shapes);
  llvm::Constant* tile_configuration(const TileShapes& shapes);

  // --- parallel.cc
  void emit_parallel(const ir::For& loop, int64_t extent);

  // --- speculate.cc
  // Emits a part of the program that may be executed twice: first with minima and maxima that drop
  // a NaN, then, only if there was one, with exact ones. If `part` is null, emits exact code only.
  void emit_exact_if_nan(const SpeculativePart* part, const std::function<void()>& emit_part);
  bool is_forgetful(const ir::Store& store) const;
  void update_extremum(const ir::Store& store);
  Val plain_extremum(ir::BinaryOp op, const ir::Expr& e);
  Val plain_extremum(ir::BinaryOp op, Val a, Val b);
  void look_at(const Region& region);
  void look_at_row(const MemoryEmitter::Address& at, int64_t elements, int64_t lanes, bool unrolled);

  struct FunctionState {
    llvm::Function* function = nullptr;
    llvm::Instruction* alloca_point = nullptr;
    llvm::Value* context = nullptr;           // kernel function only
    llvm::Value* thread_workspace = nullptr;  // this thread's block of the workspace
    llvm::Value* shared_workspace = nullptr;
    bool in_parallel = false;
    int64_t stack_bytes = 0;
    TileShapes tile_shapes;  // shapes of the first configuration; empty: none so far
  };
  struct Speculation {
    const SpeculativePart& part;
    NanDetector nan;
  };

  const ir::Program& program_;
  const CodegenOptions& options_;
  llvm::Module& module_;
  const SpeculativeParts parts_;
  const LoopDecisions decisions_;
  EmitContext context_;
  ValueEmitter values_;
  IndexEmitter indices_;
  MemoryEmitter memory_;
  ExpressionEmitter expressions_;
  llvm::IRBuilder<>& b_;
  FunctionState f_;
  Speculation* speculation_ = nullptr;
  bool compact_ = false;     // the code is hardly ever executed, so no loops are unrolled for speed
  int loops_ = 0;            // number of loops emitted so far
  int64_t unroll_step_ = 0;  // auto_unroll_max_step of the enclosing loop
  int64_t shared_bytes_ = 0;
  int64_t thread_bytes_ = 0;
  bool uses_matrix_units_ = false;
  std::unordered_map<const ir::BufferNode*, int64_t> workspace_offset_;
  int parallel_bodies_ = 0;
};

}  // namespace tensorsmith::codegen
