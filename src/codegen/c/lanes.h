// Emits vectorized loops with the vector types of GCC and Clang. It handles loops whose bodies
// consist of arithmetic on 32- and 64-bit elements at a constant stride; other loops stay loops
// over elements, which a compiler may vectorize itself.
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

// Number of elements per vector that the widest values of the body allow; nullopt if the body
// cannot be written with vectors.
std::optional<int64_t> lanes_of_body(const ir::For& loop, int vector_bytes);

// A vector type that a kernel uses, for example TS_VECTOR(f32x16, float, 64).
struct VectorType {
  ir::DType dtype;
  int64_t lanes;
  std::string name() const { return std::string(ir::to_string(dtype)) + "x" + std::to_string(lanes); }
  auto operator<=>(const VectorType&) const = default;
};
// The vector types and functions that a kernel's code uses, besides its statements.
struct VectorParts {
  std::set<VectorType> types;
  std::set<std::pair<int64_t, ir::Intrinsic>> functions;  // functions of f32 by number of lanes,
                                                          // for example TS_VECTOR_exp(16)

  std::string definitions() const;
};

// Emits the stores of one statement for lanes [start, start + lanes) of the loop's variable; the
// environment maps the variable to start.
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
  Text vector(const ir::Expr& e);  // a vector, also if the value is uniform
  // A mask: integers as wide as `like`, with all bits of a chosen lane set.
  Text mask(const ir::Expr& e, ir::DType like);
  std::string type(ir::DType dtype);  // for example f32x16
  std::string bits(ir::DType dtype);  // integers as wide as the dtype, for example i32x16
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
