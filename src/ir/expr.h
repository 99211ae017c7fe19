// Scalar expressions: immutable values, compared by structure, shared freely between programs and threads.
//
// Meaning (this is the only definition; the interpreter, the simplifier and every backend follow
// it):
//  - Integers wrap around (two's complement) at their dtype's width. Index arithmetic is kI64: simplifiers
//    assume that its sums and products do not overflow 64 bits. Data that may overflow is computed as kU64.
//  - kDiv: floats IEEE; integers truncate towards zero. kFloorDiv / kFloorMod round towards minus infinity,
//    and the remainder has the divisor's sign. An integer division or remainder by zero gives 0; min / -1 wraps.
//  - kMin and kMax are IEEE 754-2019's minimum and maximum: they propagate NaN. Of zeros of different sign
//    either may be the result. kArgMin and kArgMax of a reduction (ir/workload.h) choose the first NaN.
//  - Comparisons give kBool; with NaN every comparison but kNe is false.
//  - kNeg, + - * /, kMin and kMax take numbers; // % and bit operations integers; && || ! bool; comparisons
//    anything.
//  - kShl / kShr with a count outside [0, bits) give 0; kShr of a signed value is arithmetic.
//  - Select evaluates only the chosen side: an out-of-range read on the other side is not an error. An
//    out-of-range read that is evaluated is a bug of the program (the interpreter reports it, the verifier
//    tries to prove its absence).
//  - A product that is added or subtracted within one expression may be computed with one rounding (fma). A
//    cast of a float product to its own dtype forbids that: operators that were inlined into one expression
//    then round as they do on their own, so that x * y - x * y is 0.
//  - Cast float -> int truncates towards zero, saturates at the target's range, NaN gives 0; int -> narrower
//    int wraps; anything -> bool is x != 0; bool -> number is 0 or 1. f16 and bf16 are storage types:
//    arithmetic on them is done in f32 and rounded to nearest even after each operation; bf16 results below
//    2^-126 may be flushed to zero.
//  - Intrinsics round the real result to the dtype (f64: as accurately as libm). kAbs, kSign and kPow take
//    integers, too; those of is_dot() take i32 only, kPair bf16 only, kRoundTf32 f32 only, all others floats
//    only. kPow of integers is the exact power, wrapped; a negative exponent truncates it (0 to a negative
//    power gives 0).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "ir/dtype.h"

namespace tensorsmith::ir {

struct ExprNode;

// A reference to an immutable node; null only when default-constructed.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  // An index constant (kI64).
  Expr(int64_t index);                                    // NOLINT(google-explicit-constructor)
  Expr(int index) : Expr(static_cast<int64_t>(index)) {}  // NOLINT(google-explicit-constructor)

  bool defined() const { return node_ != nullptr; }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* operator->() const { return node_.get(); }
  const ExprNode* get() const { return node_.get(); }
  // Compares identity, not structure; for structure see ir/structural.h.
  bool same_as(const Expr& other) const { return node_ == other.node_; }
  // Returns whether the node has another owner. Only then can a traversal reach it twice.
  bool is_shared() const { return node_.use_count() > 1; }
  DType dtype() const;

 private:
  std::shared_ptr<const ExprNode> node_;
};

// A loop or axis variable. Its identity is the node's address; the name is only for people.
struct VarNode {
  std::string name;
  DType dtype = DType::kI64;
};
class Var {
 public:
  Var() = default;
  explicit Var(std::string name, DType dtype = DType::kI64)
      : node_(std::make_shared<const VarNode>(VarNode{std::move(name), dtype})) {}
  bool defined() const { return node_ != nullptr; }
  const std::string& name() const { return node_->name; }
  DType dtype() const { return node_->dtype; }
  const VarNode* get() const { return node_.get(); }
  friend bool operator==(const Var& a, const Var& b) { return a.node_ == b.node_; }
  operator Expr() const;  // NOLINT(google-explicit-constructor)

 private:
  std::shared_ptr<const VarNode> node_;
};

enum class MemoryScope : uint8_t {
  kGlobal,  // parameters and large intermediates
  kShared,  // shared by a GPU thread block
  kLocal,   // private to a thread: registers or stack
};
std::string_view to_string(MemoryScope scope);

// Storage of a tensor: row-major with the given strides. Its identity is the node's address.
struct BufferNode {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;    // elements; a scalar has an empty shape
  std::vector<int64_t> strides;  // elements; empty = compact row-major
  MemoryScope scope = MemoryScope::kGlobal;

  int64_t num_elements() const;  // product of the shape
  int64_t allocation_elements()
      const;  // with strides: 1 + sum((shape_i - 1) * stride_i), 0 if any shape_i = 0
  std::vector<int64_t> effective_strides() const;  // strides, or the compact ones
};
using Buffer = std::shared_ptr<const BufferNode>;
Buffer make_buffer(std::string name, DType dtype, std::vector<int64_t> shape,
                   MemoryScope scope = MemoryScope::kGlobal, std::vector<int64_t> strides = {});

enum class UnaryOp : uint8_t { kNeg, kNot, kBitNot };  // kNot: bool only
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,  // bool, both sides evaluated
  kBitAnd,
  kBitOr,
  kBitXor,
  kShl,
  kShr,  // integers
};
enum class Intrinsic : uint8_t {
  kAbs,   // also integers; the lowest signed value stays unchanged
  kSign,  // x > 0 ? 1 : x < 0 ? -1 : x, also for integers
  kSqrt,
  kExp,
  kLog,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kFloor,
  kCeil,
  kRound /* half to even */,
  kTrunc,
  kIsNan,
  kIsInf,
  kPow,
  kFmod /* C's fmod */,  // two arguments
  // Operands are packed, an i32 of four bytes each: the sum of u8(a_i) * i8(b_i) over the bytes, as
  // vpdpbusd computes it.
  kDot4,
  // Operands are packed, an i32 of two bf16 each, the first in the lower half; the result is the
  // f32 sum of the two products. A sum s + kDot2(a, b) may be rounded as by vpdpbf16ps, once after
  // each product is added, and may flush subnormal elements, products and sums to zero.
  kDot2,
  kPair,  // two bf16 elements: the i32 of their bits, the first in the lower half
  // Operands are packed, an i32 of two i16 each, the first in the lower half: the sum of the two
  // products, as pmaddwd computes it.
  kDot2I16,
  // kDot4 for operands whose sums of the first two and of the last two products fit in i16, so that
  // pmaddubsw is exact. Undefined for other operands.
  kDot4Narrow,
  // Rounds to 10 bits of fraction, half away from zero, as cvt.rna.tf32.f32 does (PTX ISA); values
  // that are too large become infinite. The product of two results is exact in f32, apart from its
  // exponent range, and tensor cores multiply them.
  kRoundTf32,
};
inline constexpr Intrinsic kLastIntrinsic = Intrinsic::kRoundTf32;
// Returns whether the operands are packed elements: kDot4, kDot4Narrow, kDot2 and kDot2I16.
bool is_dot(Intrinsic intrinsic);
int arity(Intrinsic intrinsic);
std::string_view to_string(UnaryOp op);
std::string_view to_string(BinaryOp op);
std::string_view to_string(Intrinsic intrinsic);
bool is_comparison(BinaryOp op);

struct IntImm {
  int64_t value = 0;
};  // any integer dtype or bool; kU64 holds its bit pattern
struct FloatImm {
  double value = 0;
};  // rounded to the node's dtype
struct VarRef {
  Var var;
};
struct Unary {
  UnaryOp op;
  Expr a;
};
struct Binary {
  BinaryOp op;
  Expr a, b;
};
struct Select {
  Expr condition, a, b;
};  // condition ? a : b
struct Cast {
  Expr a;
};  // to the node's dtype
struct Call {
  Intrinsic intrinsic;
  std::vector<Expr> args;
};
struct Load {
  Buffer buffer;
  std::vector<Expr> indices;
};  // one index per dimension, integers

struct ExprNode {
  using Kind = std::variant<IntImm, FloatImm, VarRef, Unary, Binary, Select, Cast, Call, Load>;
  DType dtype;
  Kind kind;
};

// Visits with one lambda per kind and no default: overloaded{[](const IntImm&) {...}, ...}.
template <class... Ts>
struct overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
overloaded(Ts...) -> overloaded<Ts...>;
template <class Visitor>
decltype(auto) visit(Visitor&& visitor, const Expr& e) {
  return std::visit(std::forward<Visitor>(visitor), e->kind);
}
// Returns the node as kind T, or null.
template <class T>
const T* as(const Expr& e) {
  return e.defined() ? std::get_if<T>(&e->kind) : nullptr;
}

// Builders. They check dtypes (a violation is an InternalError) and fold only the simplest
// constants (x + 0, x * 1, constant op constant on integers); ir/simplify.h does everything else.
Expr int_imm(DType dtype, int64_t value);
Expr float_imm(DType dtype, double value);
Expr bool_imm(bool value);
Expr make_const(DType dtype, double value);  // int_imm or float_imm
Expr unary(UnaryOp op, Expr a);
Expr binary(BinaryOp op, Expr a, Expr b);  // operands have the same dtype (bool for kAnd/kOr)
Expr select(Expr condition, Expr a, Expr b);
Expr cast(DType dtype, Expr a);
bool is_float_product(const Expr& e);
Expr call(Intrinsic intrinsic, std::vector<Expr> args);
Expr load(Buffer buffer, std::vector<Expr> indices);

inline Expr operator+(Expr a, Expr b) { return binary(BinaryOp::kAdd, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return binary(BinaryOp::kSub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return binary(BinaryOp::kMul, std::move(a), std::move(b)); }
inline Expr operator/(Expr a, Expr b) { return binary(BinaryOp::kDiv, std::move(a), std::move(b)); }
inline Expr floordiv(Expr a, Expr b) { return binary(BinaryOp::kFloorDiv, std::move(a), std::move(b)); }
inline Expr floormod(Expr a, Expr b) { return binary(BinaryOp::kFloorMod, std::move(a), std::move(b)); }
inline Expr min(Expr a, Expr b) { return binary(BinaryOp::kMin, std::move(a), std::move(b)); }
inline Expr max(Expr a, Expr b) { return binary(BinaryOp::kMax, std::move(a), std::move(b)); }
inline Expr operator==(Expr a, Expr b) { return binary(BinaryOp::kEq, std::move(a), std::move(b)); }
inline Expr operator!=(Expr a, Expr b) { return binary(BinaryOp::kNe, std::move(a), std::move(b)); }
inline Expr operator<(Expr a, Expr b) { return binary(BinaryOp::kLt, std::move(a), std::move(b)); }
inline Expr operator<=(Expr a, Expr b) { return binary(BinaryOp::kLe, std::move(a), std::move(b)); }
inline Expr operator>(Expr a, Expr b) { return binary(BinaryOp::kGt, std::move(a), std::move(b)); }
inline Expr operator>=(Expr a, Expr b) { return binary(BinaryOp::kGe, std::move(a), std::move(b)); }
inline Expr operator&&(Expr a, Expr b) { return binary(BinaryOp::kAnd, std::move(a), std::move(b)); }
inline Expr operator||(Expr a, Expr b) { return binary(BinaryOp::kOr, std::move(a), std::move(b)); }
inline Expr operator-(Expr a) { return unary(UnaryOp::kNeg, std::move(a)); }
inline Expr operator!(Expr a) { return unary(UnaryOp::kNot, std::move(a)); }

// Returns the value if e is an IntImm.
std::optional<int64_t> as_int(const Expr& e);
bool is_int_value(const Expr& e, int64_t value);

}  // namespace tensorsmith::ir
