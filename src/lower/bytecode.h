// Linear bytecode for expressions, shared by evaluate() (many lanes at once) and run() (one lane).
//
// Registers hold kLanes values each: integers and bool as int64 wrapped to their dtype,
// f16/bf16/f32 as float, f64 as double. There is one stream of instructions per loop level: a value
// is placed in the innermost level whose variables it uses, so that it is computed once per
// iteration of that level. Only loads can fail; all other instructions are total and may be
// computed for lanes that do not need them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id.h"
#include "ir/expr.h"
#include "ir/scalar.h"

namespace tensorsmith::lower {

enum class Opcode : uint8_t {
  // Integers; dst = a op b in 64 bits.
  kAddI,
  kSubI,
  kMulI,
  kDivI,
  kFloorDivI,
  kFloorModI,
  kMinI,
  kMaxI,
  kEqI,
  kNeI,
  kLtI,
  kLeI,
  kGtI,
  kGeI,
  kAndI,
  kOrI,
  kXorI,
  kNotB,
  kNegI,
  kWrapBool,
  kWrapI8,
  kWrapU8,
  kWrapI16,
  kWrapU16,
  kWrapI32,
  kWrapU32,
  kAddF32,
  kSubF32,
  kMulF32,
  kDivF32,
  kMinF32,
  kMaxF32,
  kEqF32,
  kNeF32,
  kLtF32,
  kLeF32,
  kGtF32,
  kGeF32,
  kNegF32,
  kAddF64,
  kSubF64,
  kMulF64,
  kDivF64,
  kMinF64,
  kMaxF64,
  kEqF64,
  kNeF64,
  kLtF64,
  kLeF64,
  kGtF64,
  kGeF64,
  kNegF64,
  kRoundF16,
  kRoundBF16,
  kIntToF32,
  kIntToF64,
  kF32ToF64,
  kF64ToF32,
  // Computed by ir/scalar.h: dtype = result, dtype_a = operands, sub = the operator.
  kUnary,
  kBinary,
  kCast,
  kCall,
  kSelectI,
  kSelectF32,
  kSelectF64,  // dst = a ? b : c
  kMaskAnd,
  kMaskAndNot,    // dst = a && b, a && !b; without a: all lanes
  kJumpIfNone,    // jumps to the target in the stream if no lane of mask a is set
  kLinear,        // dst = imm + sum
  kCheckIndex,    // for lanes of mask c: 0 <= a < imm, else a fault at the site
  kCheckWritten,  // for lanes of mask c: if element a of the slot is not written, the handler decides
  kLoad,          // dst = slot[a + uniform offset]; lanes outside mask c give 0
};

using RegisterId = Id<struct Register>;
using SlotId = Id<struct BufferSlot>;
using SiteId = Id<struct LoadSite>;
using UniformId = Id<struct UniformOffset>;
using SumId = Id<struct LinearSum>;

struct Instruction {
  Opcode op;
  ir::UnaryOp unary{};        // kUnary
  ir::BinaryOp binary{};      // kBinary
  ir::Intrinsic intrinsic{};  // kCall
  ir::DType dtype = ir::DType::kI64;
  ir::DType dtype_a = ir::DType::kI64;
  RegisterId dst, a, b, c;
  SlotId slot;        // kLoad, kCheckWritten
  UniformId uniform;  // kLoad, kCheckWritten
  SiteId site;        // kCheckIndex, kCheckWritten
  SumId sum;          // kLinear
  size_t target = 0;  // kJumpIfNone
  int64_t imm = 0;
};
using Stream = std::vector<Instruction>;

// A sum of coefficient * register.
struct LinearSum {
  struct Term {
    RegisterId reg;
    int64_t coefficient;
  };
  std::vector<Term> terms;
};
// Offset of a load that is the same in all lanes: a sum of coefficient * counter, which the driver
// computes.
struct UniformOffset {
  struct Term {
    size_t counter;  // the number given to bind_uniform
    int64_t coefficient;
  };
  std::vector<Term> terms;
};
// The subject of a check, for messages.
struct LoadSite {
  const ir::Load* load;
  std::optional<size_t> dimension;  // dimension whose index is checked; none: checks that the element was
                                    // written
};

// 64-bit arithmetic that wraps, as ir/scalar.h defines for kI64.
inline int64_t wrapping_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  (void)__builtin_add_overflow(a, b, &sum);
  return sum;
}
inline int64_t wrapping_sub(int64_t a, int64_t b) {
  int64_t difference = 0;
  (void)__builtin_sub_overflow(a, b, &difference);
  return difference;
}
inline int64_t wrapping_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  (void)__builtin_mul_overflow(a, b, &product);
  return product;
}

struct Code {
  size_t registers = 0;
  IdVector<SumId, LinearSum> sums;
  IdVector<UniformId, UniformOffset> uniform{1};  // the first one: no offset
  std::vector<std::pair<RegisterId, ir::Scalar>> constants;
  IdVector<SiteId, LoadSite> sites;
};

enum class RegisterKind : uint8_t { kInt, kF32, kF64 };
RegisterKind register_kind(ir::DType dtype);

// Storage of a buffer during execution.
struct BufferSlot {
  std::byte* data = nullptr;
  ir::DType dtype = ir::DType::kF32;
  // Element e is valid if written[e] == epoch; null: all elements are.
  uint32_t* written = nullptr;
  uint32_t epoch = 1;
};

// Properties of a buffer that the compiler needs.
struct BufferInfo {
  SlotId slot;
  bool tracked = false;  // emit kCheckWritten
  std::vector<int64_t> strides;
};

// Compiles expressions to streams. Levels are numbered from 0; the driver provides the stream of
// each level.
class ExprCompiler {
 public:
  // hoist_loads: memory does not change while the streams run, so loads are placed in outer levels
  // like other instructions; otherwise they stay in the innermost level.
  ExprCompiler(Code& code, bool hoist_loads) : code_(code), hoist_loads_(hoist_loads) {}

  void push_level(Stream* stream);
  void pop_level();
  // Binds a variable in [0, extent) to the innermost level; returns its register. extent < 0:
  // unknown.
  RegisterId bind_lanes(const ir::Var& var, int64_t extent);
  // Binds a variable of the innermost level that has the same value in all lanes: loads use it
  // through UniformOffset number `counter`, other uses through the returned register (see
  // uses_register).
  RegisterId bind_uniform(const ir::Var& var, int64_t extent, size_t counter);
  bool uses_register(RegisterId reg) const { return used_.contains(reg); }
  void bind_buffer(const ir::BufferNode* buffer, BufferInfo info);

  // Returns the register that holds e after the streams of all levels have run.
  RegisterId compile(const ir::Expr& e);
  // Returns the register with the checked flat element offset of buffer[indices]; never uses
  // uniform offsets.
  RegisterId compile_address(const ir::Load& access);

 private:
  struct Level {
    Stream* stream = nullptr;
    std::vector<const ir::ExprNode*> cached;  // values to forget when the level ends
    std::vector<const ir::VarNode*> bound;
  };
  using LevelId = Id<Level>;
  struct Value {
    RegisterId reg;
    LevelId level{0};
  };
  struct VarInfo {
    Value value;
    int64_t extent = 0;
    std::optional<size_t> counter;
  };
  struct Linear {
    int64_t constant = 0;
    std::vector<std::pair<Value, int64_t>> terms;                   // values of any level
    std::vector<std::pair<const ir::VarNode*, int64_t>> variables;  // bound variables
  };

  LevelId innermost() const { return LevelId(levels_.size() - 1); }
  RegisterId new_register() { return RegisterId(code_.registers++); }
  Value emit(Instruction instruction, LevelId level);
  Value constant(ir::Scalar value);
  Value wrap(Value v, ir::DType dtype);
  Value compile_value(const ir::Expr& e);
  Value compile_node(const ir::Expr& e);
  Value compile_unary(const ir::Unary& e, ir::DType dtype);
  Value compile_binary(const ir::Binary& e, ir::DType dtype);
  Value compile_cast(const ir::Cast& e, ir::DType dtype);
  Value compile_call(const ir::Call& e, ir::DType dtype);
  Value compile_select(const ir::Select& e, ir::DType dtype);
  Value compile_load(const ir::Load& e, ir::DType dtype);
  // `uniform` receives the id of the part that is the same in all lanes; if null, there is no such
  // part.
  Value address(const ir::Load& e, UniformId* uniform);
  void linearize(const ir::Expr& e, int64_t scale, Linear& out);
  bool in_range(const Linear& linear, int64_t extent) const;
  Value linear_value(const Linear& linear);
  Value variable(const ir::VarNode* var);

  Code& code_;
  IdVector<LevelId, Level> levels_;
  std::unordered_map<const ir::ExprNode*, Value> cache_;
  std::unordered_map<const ir::VarNode*, VarInfo> vars_;
  std::unordered_map<const ir::BufferNode*, BufferInfo> buffers_;
  std::set<RegisterId> used_;
  std::map<std::tuple<ir::DType, int64_t, int64_t>, Value> constants_;
  bool hoist_loads_;
  RegisterId mask_;  // lanes that need the value being compiled; none: all
};

struct Fault {
  SiteId site;
  int64_t index = 0;
};

template <int kLanes>
class BytecodeMachine {
 public:
  explicit BytecodeMachine(const Code& code);
  virtual ~BytecodeMachine() = default;

  IdVector<SlotId, BufferSlot> slots;
  IdVector<UniformId, int64_t> uniform;  // the first stays 0

  int64_t* ints(RegisterId reg) { return registers_[reg].i; }
  float* floats(RegisterId reg) { return registers_[reg].f; }
  double* doubles(RegisterId reg) { return registers_[reg].d; }
  ir::Scalar scalar(RegisterId reg, int lane, ir::DType dtype);
  void set_scalar(RegisterId reg, int lane, const ir::Scalar& value);

  // Returns false after a fault.
  bool execute(const Stream& stream);
  const Fault& fault() const { return fault_; }

 protected:
  // Called if elements of some lanes are missing; computes them or returns false (a fault).
  virtual bool on_missing(const Instruction& check) = 0;
  Fault fault_;

 private:
  union Lanes {
    int64_t i[kLanes];
    float f[kLanes];
    double d[kLanes];
  };
  IdVector<RegisterId, Lanes> registers_;  // constants are set once
  const Code& code_;
};

constexpr int kBlockLanes = 64;
extern template class BytecodeMachine<1>;
extern template class BytecodeMachine<kBlockLanes>;

// Writes `count` lanes of a register to consecutive elements.
template <int kLanes>
void store_lanes(BytecodeMachine<kLanes>& machine, RegisterId reg, ir::DType dtype, std::byte* destination,
                 int count);

}  // namespace tensorsmith::lower
