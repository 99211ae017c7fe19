// Flat code for expressions, shared by evaluate() (many lanes at once) and run() (one lane).
//
// Registers hold kLanes values each: integers and bool as int64 wrapped to their dtype, f16/bf16/f32 as
// float, f64 as double. Instructions are sorted into one stream a loop level: a value goes to the innermost
// level whose variables it uses, so that the driver computes it once an iteration of that level. Only loads
// can fail; everything else is total and may be computed for lanes that do not need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

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
  // Through ir/scalar.h: dtype = result, dtype_a = operands, sub = the operator.
  kUnary,
  kBinary,
  kCast,
  kCall,
  kSelectI,
  kSelectF32,
  kSelectF64,  // dst = a ? b : c
  kMaskAnd,
  kMaskAndNot,    // dst = a && b, a && !b; a < 0: all lanes
  kJumpIfNone,    // to instruction imm of the stream if no lane of mask a is set
  kLinear,        // dst = imm + sum of terms [a, a + b)
  kCheckIndex,    // lanes of mask c: 0 <= a < imm, else fault at site dst, dimension b
  kCheckWritten,  // lanes of mask c: element a of buffer b is there, else the handler decides
  kLoad,          // dst = buffer b [a + uniform offset imm]; lanes outside mask c give 0
};

struct Instruction {
  Opcode op;
  uint8_t sub = 0;
  ir::DType dtype = ir::DType::kI64;
  ir::DType dtype_a = ir::DType::kI64;
  int32_t dst = -1, a = -1, b = -1, c = -1;
  int64_t imm = 0;
};
using Stream = std::vector<Instruction>;

// A term of a linear combination: coefficient * register.
struct LinearTerm {
  int32_t reg;
  int64_t coefficient;
};
// Offset of a load that is the same in all lanes: sum of coefficient * counter; the driver computes it.
struct UniformOffset {
  std::vector<LinearTerm> counters;  // reg = the number given to bind_uniform
};
// Where a load stands, for messages.
struct LoadSite {
  int32_t buffer;
  const ir::Load* load;
};

struct Code {
  int32_t registers = 0;
  std::vector<LinearTerm> terms;
  std::vector<UniformOffset> uniform{1};  // entry 0: no offset
  std::vector<std::pair<int32_t, ir::Scalar>> constants;
  std::vector<LoadSite> sites;
};

enum class RegisterKind : uint8_t { kInt, kF32, kF64 };
RegisterKind register_kind(ir::DType dtype);

// Storage of a buffer while code runs.
struct BufferSlot {
  std::byte* data = nullptr;
  ir::DType dtype = ir::DType::kF32;
  // Element e holds a value if written[e] == epoch; null: all elements do.
  uint32_t* written = nullptr;
  uint32_t epoch = 1;
};

// How the compiler sees a buffer.
struct BufferInfo {
  int32_t slot = 0;
  bool tracked = false;  // emit kCheckWritten
  std::vector<int64_t> strides;
};

// Compiles expressions to streams. Levels are numbered from 0; the driver gives the stream of each.
class ExprCompiler {
 public:
  // hoist_loads: memory does not change while the streams run, so that loads move outwards like everything
  // else; otherwise they stay in the innermost level.
  ExprCompiler(Code& code, bool hoist_loads) : code_(code), hoist_loads_(hoist_loads) {}

  int32_t push_level(Stream* stream);  // the new level's number
  void pop_level();
  // A variable in [0, extent) that lives in the innermost level; returns its register. extent < 0: unknown.
  int32_t bind_lanes(const ir::Var& var, int64_t extent);
  // A variable of the innermost level with the same value in all lanes: loads use it through UniformOffset
  // number `counter`, other uses through the register returned (see uses_register).
  int32_t bind_uniform(const ir::Var& var, int64_t extent, int32_t counter);
  bool uses_register(int32_t reg) const { return used_.contains(reg); }
  void bind_buffer(const ir::BufferNode* buffer, BufferInfo info);

  // The register that holds e after the streams of all levels have run.
  int32_t compile(const ir::Expr& e);
  // The register of the flat element offset of buffer[indices], checked; never uses uniform offsets.
  int32_t compile_address(const ir::Load& access, int32_t& site);

 private:
  struct Value {
    int32_t reg = -1;
    int32_t level = 0;
  };
  struct VarInfo {
    Value value;
    int64_t extent = 0;
    int32_t counter = -1;
  };
  struct Linear {
    int64_t constant = 0;
    std::vector<std::pair<Value, int64_t>> terms;                   // values of any level
    std::vector<std::pair<const ir::VarNode*, int64_t>> variables;  // bound variables
  };

  int32_t innermost() const { return static_cast<int32_t>(streams_.size()) - 1; }
  Value emit(Instruction instruction, int32_t level);
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
  Value address(const ir::Load& e, int32_t site, bool allow_uniform, int64_t& uniform);
  void linearize(const ir::Expr& e, int64_t scale, Linear& out);
  bool in_range(const Linear& linear, int64_t extent) const;
  Value linear_value(const Linear& linear);
  Value variable(const ir::VarNode* var);

  Code& code_;
  std::vector<Stream*> streams_;
  std::vector<std::vector<const ir::ExprNode*>> cached_;  // by level: what to forget when the level ends
  std::vector<std::vector<const ir::VarNode*>> bound_;    // by level
  std::unordered_map<const ir::ExprNode*, Value> cache_;
  std::unordered_map<const ir::VarNode*, VarInfo> vars_;
  std::unordered_map<const ir::BufferNode*, BufferInfo> buffers_;
  std::unordered_set<int32_t> used_;
  std::map<std::tuple<ir::DType, int64_t, int64_t>, Value> constants_;
  bool hoist_loads_;
  int32_t mask_ = -1;  // register of the lanes that want the value being compiled; -1: all
};

struct Fault {
  int32_t site = -1;
  int32_t dimension = -1;  // -1: never written
  int64_t index = 0;
};

template <int kLanes>
class Machine {
 public:
  explicit Machine(const Code& code);
  virtual ~Machine() = default;

  std::vector<BufferSlot> slots;
  std::vector<int64_t> uniform;  // by Code::uniform; entry 0 stays 0

  int64_t* ints(int32_t reg) { return registers_[static_cast<size_t>(reg)].i; }
  float* floats(int32_t reg) { return registers_[static_cast<size_t>(reg)].f; }
  double* doubles(int32_t reg) { return registers_[static_cast<size_t>(reg)].d; }
  ir::Scalar scalar(int32_t reg, int lane, ir::DType dtype);
  void set_scalar(int32_t reg, int lane, const ir::Scalar& value);

  // False after a fault.
  bool execute(const Stream& stream);
  const Fault& fault() const { return fault_; }

 protected:
  // Some lanes' elements are missing; makes them or returns false (a fault).
  virtual bool on_missing(const Instruction& check) = 0;
  Fault fault_;

 private:
  union Lanes {
    int64_t i[kLanes];
    float f[kLanes];
    double d[kLanes];
  };
  std::vector<Lanes> registers_;  // constants are set once
  const Code& code_;
};

constexpr int kBlockLanes = 64;
extern template class Machine<1>;
extern template class Machine<kBlockLanes>;

// Writes `count` lanes of a register to consecutive elements.
template <int kLanes>
void store_lanes(Machine<kLanes>& machine, int32_t reg, ir::DType dtype, std::byte* destination, int count);

}  // namespace tensorsmith::lower
