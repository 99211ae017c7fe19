// Vectorized loops as code on vectors of GCC and Clang. It takes the loops whose bodies are made of arithmetic on 32- and
// 64-bit elements at a constant stride; all others stay loops over elements, which a compiler may vectorize itself.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "codegen/c/expr.h"
#include "ir/expr_memo.h"
#include "ir/stmt.h"

namespace tensorsmith::codegen {

// Elements that the widest values of the body allow in a vector; nullopt: it is not written as vectors.
std::optional<int64_t> lanes_of_body(const ir::For& loop, int vector_bytes);

// A vector type that a kernel uses: TS_VECTOR(f32x16, float, 64).
struct VectorType {
  ir::DType dtype;
  int64_t lanes;
  std::string name() const { return std::string(ir::to_string(dtype)) + "x" + std::to_string(lanes); }
  auto operator<=>(const VectorType&) const = default;
};
// What a kernel's vector code is made of, beside its statements.
struct VectorParts {
  std::set<VectorType> types;
  std::set<std::pair<int64_t, ir::Intrinsic>> functions;  // of f32, by lanes: TS_VECTOR_exp(16)

  std::string definitions(const Dialect& dialect) const;
};

// Stores of one statement for lanes [start, start + lanes) of the loop's variable; the environment gives the variable's
// start.
class LaneWriter {
 public:
  LaneWriter(Environment& environment, Block& out, VectorParts& parts, const ir::Var& lane, int64_t lanes)
      : env_(environment), scalars_(environment, out), parts_(parts), lane_(lane), lanes_(lanes) {}

  void store(const ir::Store& store);

 private:
  struct Val {
    Text text;
    bool uniform = true;
  };
  Val value(const ir::Expr& e);
  Text node(const ir::Expr& e);
  Text binary(const ir::Expr& e, const ir::Binary& op);
  Text select(const ir::Expr& e, const ir::Select& select);
  Text call(const ir::Expr& e, const ir::Call& call);
  Text cast(const ir::Expr& e, const ir::Cast& cast);
  Text load(const ir::Load& load);
  Text vector(const ir::Expr& e);  // of a uniform value too
  // All bits of a lane, of integers as wide as `like`.
  Text mask(const ir::Expr& e, ir::DType like);
  std::string type(ir::DType dtype);  // f32x16
  std::string bits(ir::DType dtype);  // i32x16, as wide as the dtype
  Text named(const std::string& vector_type, const Text& value);
  bool uses_lane(const ir::Expr& e) const { return ir::uses_var(e, lane_); }

  Environment& env_;
  ScalarWriter scalars_;
  VectorParts& parts_;
  const ir::Var lane_;
  const int64_t lanes_;
  UseCounts uses_;
  ir::ExprMemo<Text> known_;
};

}  // namespace tensorsmith::codegen
