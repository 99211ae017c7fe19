// Expressions with shared subexpressions, y = x * sigmoid(x) applied forty times: 160 nodes, but a
// tree of more than 2^40. No traversal may visit the tree.
#include <gtest/gtest.h>

#include "ir/analysis.h"
#include "ir/simplify.h"
#include "ir/structural.h"
#include "ir/verify_program.h"

namespace tensorsmith::ir::sharing_test {
namespace {

constexpr int kLength = 40;

// The chain for x[index]; every link is scale * x / (1 + exp(-x)).
Expr chain(const Buffer& x, const Expr& index, double scale = 1) {
  Expr value = load(x, {index});
  for (int k = 0; k < kLength; ++k) {
    const Expr one = float_imm(DType::kF32, 1);
    value = float_imm(DType::kF32, scale) * value / (one + call(Intrinsic::kExp, {-value}));
  }
  return value;
}

int64_t nodes(const Expr& e) {
  int64_t count = 0;
  for_each_expr(e, [&](const Expr& sub) { count += as<FloatImm>(sub) == nullptr ? 1 : 0; });
  return count;
}

class Sharing : public ::testing::Test {
 protected:
  const Buffer x_ = make_buffer("X", DType::kF32, {64});
  const Buffer y_ = make_buffer("Y", DType::kF32, {64});
  const Var i_{"i"}, j_{"j"};
  const Expr e_ = chain(x_, i_);
};

TEST_F(Sharing, VisitsEachNodeOnce) {
  EXPECT_EQ(nodes(e_), 2 + 5 * kLength);
  EXPECT_EQ(loads_of(e_).size(), 1U);
  EXPECT_TRUE(uses_var(e_, i_));
  EXPECT_FALSE(uses_var(e_, j_));
  EXPECT_GT(written_size(e_), int64_t{1} << 40);
  EXPECT_EQ(written_size(load(x_, {i_}) + load(x_, {Expr(i_) + 1})), 1 + 2 + 4);
}

TEST_F(Sharing, WrittenSizeSaturates) {
  Expr e = load(x_, {i_});
  for (int k = 0; k < 100; ++k) e = e + e;
  EXPECT_EQ(written_size(e), INT64_MAX);
}

TEST_F(Sharing, WrittenSizeCountsWhatLoadsStandFor) {
  const Expr square = load(x_, {i_}) * load(y_, {i_});
  EXPECT_EQ(written_size(square, [&](const Load& l) { return l.buffer == y_ ? 10 : 0; }), 1 + 2 + 2 + 10);
}

TEST_F(Sharing, RewritesKeepIt) {
  const Expr moved = substitute(e_, VarMap{{i_.get(), Expr(j_) + 1}});
  EXPECT_EQ(nodes(moved), nodes(e_) + 2);
  EXPECT_TRUE(structural_equal(moved, chain(x_, Expr(j_) + 1)));
  EXPECT_TRUE(substitute(e_, VarMap{{j_.get(), 0}}).same_as(e_));
  const Expr other = rewrite(e_, [&](const Expr& e) {
    const Load* l = as<Load>(e);
    return l == nullptr ? e : load(y_, l->indices);
  });
  EXPECT_TRUE(structural_equal(other, chain(y_, i_)));
  EXPECT_EQ(nodes(other), nodes(e_));
}

TEST_F(Sharing, ComparesStructure) {
  EXPECT_TRUE(structural_equal(e_, chain(x_, i_)));
  EXPECT_FALSE(structural_equal(e_, chain(x_, j_)));
  EXPECT_FALSE(structural_equal(e_, chain(x_, i_, 2)));
}

TEST_F(Sharing, Simplifies) {
  const Expr index = floordiv(Expr(i_) * 4 + 3, 4);
  const Expr simple = simplify(chain(x_, index), {{i_.get(), {0, 63}}});
  EXPECT_EQ(nodes(simple), 2 + (5 - 1) * kLength);  // times one
  EXPECT_TRUE(simplify(simple, {{i_.get(), {0, 63}}}).same_as(simple));
}

TEST_F(Sharing, VerifiesPrograms) {
  const Program good{"p", {x_}, {y_}, make_for({i_, 64, {}, {}, 0, make_store(y_, {i_}, e_)})};
  EXPECT_TRUE(verify(good).ok());
  EXPECT_TRUE(verify_in_bounds(good).ok());
  const Program bad{"p", {x_}, {y_}, make_for({i_, 65, {}, {}, 0, make_store(y_, {0}, e_)})};
  EXPECT_TRUE(verify(bad).ok());
  EXPECT_FALSE(verify_in_bounds(bad).ok());
  // An access that is in range in one loop is out of range outside of it.
  const Program outside{
      "p",
      {x_},
      {y_},
      make_seq({make_for({i_, 64, {}, {}, 0, make_store(y_, {i_}, e_)}), make_store(y_, {0}, e_)})};
  EXPECT_FALSE(verify(outside).ok());
}

TEST_F(Sharing, WorkloadsAreOfAPrintableSize) {
  const auto input = placeholder("X", DType::kF32, {64});
  const auto workload = [&](const Expr& body) {
    const auto y = compute("Y", {{i_, 64}}, {}, Combiner::kNone, {body});
    return Workload{{input, y}, {y->output()}};
  };
  const Workload large = workload(chain(input->output(), i_));
  EXPECT_GT(flop_count(large), 64.0 * (int64_t{1} << 40));
  const Status status = verify(large);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "operation 'Y': a body is too large to be written out");
}

}  // namespace
}  // namespace tensorsmith::ir::sharing_test
