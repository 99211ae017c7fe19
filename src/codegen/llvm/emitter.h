// Loop program -> LLVM IR. Internal to the room: the only users are the .cc files beside it.
//
// The emitter does itself what optimizer passes would do at a higher price: it unrolls, folds index
// arithmetic into affine forms with known ranges, places loop-invariant address arithmetic at the outermost
// loop where it is defined, and turns vectorized loops into vector types. What is left to passes is promotion
// of local buffers to registers, common subexpressions, and hoisting of loads.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <deque>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/llvm/codegen.h"
#include "codegen/llvm/extremum_regions.h"
#include "codegen/plan.h"
#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/expr_memo.h"
#include "ir/stmt.h"

namespace tensorsmith::codegen {

// What the emitter must know about the machine.
struct TargetTraits {
  int vector_bytes = 16;
  int vector_registers = 16;
  bool fma = false;             // scalar and vector fused multiply-add instructions
  bool half_convert = false;    // f16 <-> f32 instructions
  bool mask_registers = false;  // comparisons of vectors give masks, not vectors
  bool masked_memory = false;   // contiguous accesses under a mask cost what plain ones do
  bool dot4 = false;            // vpdpbusd for every vector up to vector_bytes
  bool dot2 = false;            // vdpbf16ps and vcvtneps2bf16 for every vector up to vector_bytes
  bool multiply_add = false;    // pmaddwd: pairs of 16-bit products, added
};

// A value of one expression. A uniform value (the same in all lanes) is a scalar; otherwise value is a vector
// with one element a lane. f16 and bf16 are held as float, bool as i1.
struct Val {
  llvm::Value* value = nullptr;
  bool uniform = true;
};

// A scalar i64 that index arithmetic does not look into.
struct Atom {
  llvm::Value* value = nullptr;
  int depth = 0;  // scope that defines it, or kHere
  int id = 0;     // order of creation
  ir::Interval range;
};
// Depth of values computed at the insertion point: valid for the expression under evaluation only.
constexpr int kHere = 1 << 20;

// constant + sum(coefficient * atom) + lane * (lane number) + vector, modulo 2^64.
struct Affine : ir::AffineSum<const Atom*, llvm::SmallVector<ir::AffineTerm<const Atom*>, 4>> {
  int64_t lane = 0;
  llvm::Value* vector = nullptr;  // <lanes x i64>, or null

  bool is_constant() const { return lane == 0 && terms.empty() && vector == nullptr; }
  bool uniform() const { return lane == 0 && vector == nullptr; }
};

class Emitter {
 public:
  Emitter(const ir::Program& program, const TargetTraits& traits, const CodegenOptions& options,
          llvm::Module& module);
  // Adds the kernel function to the module.
  void run();
  int64_t shared_workspace_bytes() const { return shared_bytes_; }
  int64_t thread_workspace_bytes() const { return thread_bytes_; }

 private:
  // Storage of one buffer as the current function sees it.
  struct BufferInfo {
    llvm::Value* base = nullptr;
    int64_t elements = 0;
    int id = 0;        // of the buffer, for alias metadata
    int instance = 0;  // of this allocation: unrolled code allocates one buffer several times
    int lanes = 1;     // > 1: allocated inside a vectorized loop, each element is stored once a lane
    bool read_only = false;
    bool in_registers = false;  // promoted, if all of its accesses are plain
    std::vector<int64_t> strides;
  };
  // Where values that depend on loop variables down to one depth are computed, and those already there.
  struct Scope {
    llvm::Instruction* insert_before = nullptr;
    std::map<std::vector<int64_t>, llvm::Value*> sums;  // by key_of
    std::map<std::vector<int64_t>, const Atom*> atoms;
  };
  struct FunctionState {
    llvm::Function* function = nullptr;
    llvm::Instruction* alloca_point = nullptr;
    std::vector<Scope> scopes;
    std::unordered_map<const ir::VarNode*, Affine> vars;
    std::unordered_map<const ir::BufferNode*, BufferInfo> buffers;
    llvm::Value* context = nullptr;           // kernel function only
    llvm::Value* thread_workspace = nullptr;  // this thread's block
    llvm::Value* shared_workspace = nullptr;
    bool in_parallel = false;
    int64_t stack_bytes = 0;
  };

  void export_info();

  // --- types.cc
  llvm::Type* compute_type(ir::DType dtype) const;
  llvm::Type* memory_type(ir::DType dtype) const;
  llvm::Type* with_lanes(llvm::Type* scalar) const;  // a vector of lanes_ elements
  // The type with the shape (scalar or vector) of another.
  static llvm::Type* like(llvm::Type* scalar, llvm::Type* shape);
  llvm::Value* to_memory(ir::DType dtype, llvm::Value* v);
  llvm::Value* from_memory(ir::DType dtype, llvm::Value* v);
  llvm::Value* convert(ir::DType from, ir::DType to, llvm::Value* v);
  // Rounds a float to f16 or bf16 precision; other dtypes are left alone.
  llvm::Value* round_to(ir::DType dtype, llvm::Value* v);
  llvm::Value* f32_to_f16_bits(llvm::Value* v);
  llvm::Value* f16_bits_to_f32(llvm::Value* v);
  llvm::Value* f32_to_bf16_bits(llvm::Value* v);

  // --- index.cc
  Affine index(const ir::Expr& e);
  Affine opaque(const ir::Expr& e);
  Affine extremum(const ir::Expr& e, ir::BinaryOp op, const Affine& a, const Affine& b);
  Affine atom_here(llvm::Value* v, ir::Interval range);
  Affine index_node(const ir::Expr& e);
  int depth_of(const ir::Expr& e) const;
  ir::Interval range_of(const Affine& a) const;  // everything() if an end is unknown
  Affine floor_div(const Affine& a, int64_t divisor);
  Affine floor_mod(const Affine& a, int64_t divisor);
  class IndexRules;
  Affine divided_lanes(const Affine& a, int64_t divisor, const ir::Interval& values);
  Affine divided_atom(const Affine& a, int64_t divisor, bool modulo);
  // The value in the current function; uniform part and, if any, lanes.
  Val materialize(const Affine& a);
  llvm::Value* uniform_sum(const Affine& a);
  llvm::Value* pointer_to(const ir::Buffer& buffer, const BufferInfo& info, const Affine& element);
  llvm::Value* lane_numbers(int bits) const;
  Val compare(ir::BinaryOp op, const Affine& a, const Affine& b);
  const Atom* new_atom(llvm::Value* v, int depth, ir::Interval range);
  static Affine affine_of(const Atom* atom);
  Affine sum(const Affine& a, const Affine& b, int64_t scale_b);  // a + scale_b * b
  static int depth_of(const Affine& a);
  static std::vector<int64_t> key_of(int64_t tag, const Affine& a, int max_depth);

  // --- expr.cc
  Val eval(const ir::Expr& e);
  Val eval_generic(const ir::Expr& e);
  Val eval_node(const ir::Expr& e);
  Val eval_unary(ir::DType dtype, ir::UnaryOp op, const ir::Expr& a);
  Val eval_binary(ir::DType dtype, const ir::Binary& op);
  // uniform && lanes; null = true.
  struct Condition {
    llvm::Value* uniform = nullptr;
    llvm::Value* lanes = nullptr;
    bool never = false;
  };
  Condition eval_condition(const ir::Expr& e);
  Val eval_select(const ir::Select& outer);
  Val eval_branch(llvm::Value* condition, const ir::Expr& a, const ir::Expr& b);
  Val eval_call(ir::DType dtype, const ir::Call& call);
  bool try_fma(ir::DType dtype, const ir::Binary& op, Val& out);
  // --- speculate.cc
  // Emits a part of the program that may be executed twice: first with minima and maxima that forget a NaN, then, only
  // if there was one, with exact ones. Null: once, exact.
  void emit_exact_if_nan(const SpeculativePart* part, const std::function<void()>& emit_part);
  bool is_forgetful(const ir::Store& store) const;
  void update_extremum(const ir::Store& store);
  Val plain_extremum(ir::BinaryOp op, const ir::Expr& e);
  Val plain_extremum(ir::BinaryOp op, Val a, Val b);
  void look_at(const Region& region);
  void look_for_nan(llvm::Value* x);
  llvm::Value* seen_nan();
  // What has been seen of values of a type.
  struct Seen {
    llvm::Type* type = nullptr;
    size_t number = 0;
    llvm::Type* content = nullptr;
    llvm::AllocaInst* place = nullptr;
  };
  Seen seen(llvm::Type* type, size_t number);
  struct Unpaired {
    llvm::Value* value = nullptr;
    std::vector<llvm::Instruction*> made;  // for it, users first
  };
  struct Speculation {
    const SpeculativePart* part = nullptr;
    llvm::Instruction* begin = nullptr;  // what has been seen is set to nothing before it
    std::vector<Seen> seen;
    size_t comparisons = 0;
    llvm::BasicBlock* block = nullptr;              // of values looked at last
    llvm::SmallPtrSet<llvm::Value*, 16> looked_at;  // in that block
    std::map<llvm::Type*, Unpaired> unpaired;       // a value of that block compared with itself
  };
  Speculation* speculation_ = nullptr;
  bool compact_ = false;  // code that is hardly ever executed: no loops unrolled for speed

  // --- dot.cc
  bool try_dot(const ir::Binary& op, Val& out);
  Val dot(const ir::Call& call, const Val* sum);
  Val pair(const ir::Call& call);
  bool try_word(const ir::Binary& op, Val& out);
  bool load_word(llvm::ArrayRef<const ir::Load*> parts, Val& out);
  llvm::Value* dot4_chunk(llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Value* dot2_chunk(llvm::Value* sum, llvm::Value* a, llvm::Value* b);

  // --- expr.cc
  llvm::Value* arithmetic(ir::BinaryOp op, ir::DType dtype, llvm::Value* a, llvm::Value* b);
  static const llvm::ConstantFP* constant_float(const llvm::Value* v);
  static bool is_number(const llvm::Value* v);  // a constant that is no NaN
  static bool is_infinite(const llvm::Value* v, bool negative);
  llvm::Value* extremum(ir::BinaryOp op, ir::DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* integer_division(ir::BinaryOp op, bool is_signed, llvm::Value* a, llvm::Value* b);
  llvm::Value* comparison(ir::BinaryOp op, ir::DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* broadcast(Val v);
  // Makes both uniform or both vectors; true if vectors.
  bool unify(Val& a, Val& b);

  // --- memory.cc
  struct Address {
    const BufferInfo* info = nullptr;
    Affine element;  // flat index of the element, lane expansion included
    ir::DType dtype = ir::DType::kF32;
    bool in_range = false;  // proven for all lanes, active or not
    // Elements before the first and behind the last lane that are there wherever the lanes themselves are.
    int64_t room_before = 0, room_behind = 0;
  };
  Address address_of(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);
  void look_at_row(const ir::Buffer& buffer, const Address& at, int64_t elements, int64_t lanes,
                   bool unrolled);
  // Asks for 0 where the guard is false and, if lanes, in inactive lanes.
  struct ZeroRequest {
    bool lanes = false;
    bool granted = false;
  };
  Val load(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, ZeroRequest* zero = nullptr);
  Val load_from(const ir::Buffer& buffer, const Address& at, ZeroRequest* zero);
  void forget_loads(const ir::Buffer& buffer);
  // Elements at a constant place: the first and their number, which is 0 if there is no such place.
  std::pair<int64_t, int64_t> constant_place(const Address& at) const;
  void remember_constant(const Address& at, const Val& value);
  llvm::Value* load_vector(const ir::Buffer& buffer, const Address& at, int64_t lanes, llvm::Value* guard,
                           llvm::Value* mask, llvm::Align align);
  bool loads_in_blocks(int64_t stride) const;
  llvm::Value* load_strided(const ir::Buffer& buffer, const Address& at, llvm::Value* guard,
                            llvm::Value* mask);
  llvm::Value* load_gather(const ir::Buffer& buffer, const Address& at, llvm::Value* mask);
  void store(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, Val value);
  void store_scatter(const ir::Buffer& buffer, const Address& at, llvm::Value* value);
  llvm::Align alignment_of(const Address& at) const;
  template <typename Instruction>
  Instruction* annotate(Instruction* access, const BufferInfo& info, bool invariant);
  llvm::Value* zero_block(int64_t bytes);
  llvm::Value* guarded_pointer(const ir::Buffer& buffer, const Address& at, llvm::Value* condition,
                               int64_t size);
  // `lanes` pointers, those beyond lanes_ as the first.
  llvm::Value* vector_of_pointers(const ir::Buffer& buffer, const Address& at, int64_t lanes);
  llvm::Value* any_lane(llvm::Value* mask);

  // --- stmt.cc
  void emit(const ir::Stmt& s);
  void emit_once(const ir::Stmt& s);
  void emit_for(const ir::Stmt& s, const ir::For& loop);
  void emit_serial(const ir::For& loop);
  // for v in [begin, end): body; begin < end is known if nonempty.
  void emit_loop(const ir::Var& var, llvm::Value* begin, llvm::Value* end, ir::Interval range, bool nonempty,
                 const std::function<void(const Affine&)>& body);
  void emit_unrolled(const ir::For& loop, int64_t extent);
  void emit_vectorized(const ir::For& loop, int64_t extent);
  void emit_if(const ir::IfThenElse& branch);
  void emit_allocate(const ir::Stmt& s, const ir::Allocate& allocate);
  llvm::BasicBlock* new_block(const char* name);

  // --- transpose.cc
  // The unrolled loop around a vectorized one, if that stores across rows; else nothing is emitted.
  bool emit_transposed(const ir::For& loop, int64_t extent);

  // --- parallel.cc
  void emit_parallel(const ir::For& loop, int64_t extent);

  // --- emitter.cc
  void begin_function(llvm::Function* function);
  void end_function();
  void make_alias_scopes();
  const BufferInfo& info_of(const ir::Buffer& buffer) const;
  llvm::Value* load_field(llvm::Value* base, int64_t offset, llvm::Type* type, int64_t align_of_pointee);

  const ir::Program& program_;
  const TargetTraits traits_;
  const CodegenOptions& options_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  const SpeculativeParts parts_;
  Plan plan_;
  FunctionState f_;
  std::deque<Atom> atoms_;
  int lanes_ = 1;
  // What shared expressions of the statement under emission evaluate to, as far as it is defined at the
  // insertion point.
  struct Evaluated {
    ir::ExprMemo<Val> values;
    ir::ExprMemo<Affine> indices;
  };
  Evaluated evaluated_;
  // Forgets on destruction what was evaluated since: under a guard or a mask, or in a block that is left.
  class EvaluationScope {
   public:
    explicit EvaluationScope(Evaluated& evaluated)
        : evaluated_(evaluated), values_(evaluated.values.mark()), indices_(evaluated.indices.mark()) {}
    ~EvaluationScope() {
      evaluated_.values.rollback(values_);
      evaluated_.indices.rollback(indices_);
    }
    EvaluationScope(const EvaluationScope&) = delete;
    EvaluationScope& operator=(const EvaluationScope&) = delete;

   private:
    Evaluated& evaluated_;
    size_t values_, indices_;
  };
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
  llvm::Value* mask_ = nullptr;   // <lanes_ x i1>, null = all lanes are active
  llvm::Value* guard_ = nullptr;  // uniform i1: loads may only read where it is true; null = true
  int64_t unroll_step_ = 0;       // of the enclosing auto_unroll_max_step
  int64_t emitted_steps_ = 0;     // as Plan::steps counts
  int64_t shared_bytes_ = 0;
  int64_t thread_bytes_ = 0;
  int64_t zero_block_bytes_ = 0;
  llvm::GlobalVariable* zero_block_ = nullptr;
  std::unordered_map<const ir::BufferNode*, int64_t> workspace_offset_;
  std::unordered_map<const ir::BufferNode*, int> buffer_ids_;
  std::vector<std::pair<llvm::MDNode*, llvm::MDNode*>> alias_metadata_;  // by buffer id: scope, noalias
  int parallel_bodies_ = 0;
  int instances_ = 0;
};

}  // namespace tensorsmith::codegen
