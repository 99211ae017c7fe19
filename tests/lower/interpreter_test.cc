#include "lower/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tensorsmith::lower::interpreter_test {
namespace {

using ir::DType;
using ir::Expr;
using ir::Var;

Tensor iota(std::vector<int64_t> shape) {
  Tensor t = Tensor::zeros(DType::kI32, std::move(shape));
  for (int64_t k = 0; k < t.num_elements(); ++k) t.set(k, ir::scalar_int(DType::kI32, k + 1));
  return t;
}

ir::Stmt loop(const Var& var, Expr extent, ir::Stmt body, ir::ForKind kind = ir::ForKind::kSerial) {
  return ir::make_for({var, std::move(extent), kind, ir::ThreadAxis::kNone, 0, std::move(body)});
}

struct RowSums {
  ir::Buffer x = ir::make_buffer("X", DType::kI32, {3, 4});
  ir::Buffer y = ir::make_buffer("Y", DType::kI32, {3});
  ir::Buffer t = ir::make_buffer("T", DType::kI32, {4}, ir::MemoryScope::kLocal);
  Var i{"i"}, k{"k"}, v{"v"};
  bool init = true;
  Expr copy_extent = 4;
  Expr row = i;

  // for i: alloc T; T = X[i, :]; Y[i] = sum T
  ir::Program program() const {
    std::vector<ir::Stmt> body;
    body.push_back(
        loop(v, copy_extent, ir::make_store(t, {v}, ir::load(x, {row, v})), ir::ForKind::kVectorized));
    if (init) body.push_back(ir::make_store(y, {i}, ir::int_imm(DType::kI32, 0)));
    body.push_back(loop(k, 4, ir::make_store(y, {i}, ir::load(y, {i}) + ir::load(t, {k}))));
    return {"sums", {x}, {y}, loop(i, 3, ir::make_allocate(t, ir::make_seq(body)), ir::ForKind::kParallel)};
  }
};

TEST(Run, LoopsAllocationsAndReductions) {
  const std::vector<Tensor> inputs = {iota({3, 4})};
  const auto out = run(RowSums{}.program(), inputs);
  ASSERT_TRUE(out.ok()) << out.error().message();
  ASSERT_EQ(out->size(), 1U);
  EXPECT_EQ((*out)[0].at(0).i, 1 + 2 + 3 + 4);
  EXPECT_EQ((*out)[0].at(1).i, 5 + 6 + 7 + 8);
  EXPECT_EQ((*out)[0].at(2).i, 9 + 10 + 11 + 12);
}

TEST(Run, ReadOfUnwrittenElementNamesTheStatement) {
  const std::vector<Tensor> inputs = {iota({3, 4})};
  RowSums p;
  p.init = false;
  auto out = run(p.program(), inputs);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().code, ErrorCode::kIllegal);
  EXPECT_EQ(out.error().message(), "i=0/k=0/store to 'Y': read of element 0 of 'Y', which was never written");

  // The second iteration must not see the values that the first one left in T.
  RowSums q;
  q.copy_extent = ir::select(Expr(q.i) == 0, Expr(4), Expr(2));
  out = run(q.program(), inputs);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().message(), "i=1/k=2/store to 'Y': read of element 2 of 'T', which was never written");
}

TEST(Run, AccessOutOfRangeNamesTheStatement) {
  const std::vector<Tensor> inputs = {iota({3, 4})};
  RowSums p;
  p.row = Expr(p.i) * 2;
  auto out = run(p.program(), inputs);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().message(),
            "i=2/v=0/store to 'T': access out of range: index 4 of dimension 0 of 'X', whose extent is 3");
  RowSums q;
  q.copy_extent = 5;
  out = run(q.program(), inputs);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().code, ErrorCode::kIllegal);
}

TEST(Run, GuardsAndTriangularLoops) {
  const ir::Buffer x = ir::make_buffer("X", DType::kI32, {5});
  const ir::Buffer y = ir::make_buffer("Y", DType::kI32, {5});
  const Var i("i"), j("j"), z("z");
  // Y[i] = sum of X[0 .. i], and -1 at 4
  const ir::Stmt update = loop(j, Expr(i) + 1, ir::make_store(y, {i}, ir::load(y, {i}) + ir::load(x, {j})));
  const ir::Stmt body =
      ir::make_seq({ir::make_store(y, {i}, ir::int_imm(DType::kI32, 0)),
                    ir::make_if(Expr(i) < 4, update, ir::make_store(y, {i}, ir::int_imm(DType::kI32, -1)))});
  const std::vector<Tensor> inputs = {iota({5})};
  const auto out = run({"prefix", {x}, {y}, loop(i, 5, body)}, inputs);
  ASSERT_TRUE(out.ok()) << out.error().message();
  const std::vector<int64_t> expected = {1, 3, 6, 10, -1};
  for (int64_t k = 0; k < 5; ++k) EXPECT_EQ((*out)[0].at(k).i, expected[static_cast<size_t>(k)]);
}

TEST(Run, SelectDoesNotEvaluateTheOtherSide) {
  const ir::Buffer x = ir::make_buffer("X", DType::kI32, {5});
  const ir::Buffer y = ir::make_buffer("Y", DType::kI32, {7});
  const Var i("i");
  const Expr at = Expr(i) - 1;
  const Expr value =
      ir::select(Expr(at) >= 0 && Expr(at) < 5, ir::load(x, {at}), ir::int_imm(DType::kI32, 0));
  const std::vector<Tensor> inputs = {iota({5})};
  const auto out = run({"pad", {x}, {y}, loop(i, 7, ir::make_store(y, {i}, value))}, inputs);
  ASSERT_TRUE(out.ok()) << out.error().message();
  const std::vector<int64_t> expected = {0, 1, 2, 3, 4, 5, 0};
  for (int64_t k = 0; k < 7; ++k) EXPECT_EQ((*out)[0].at(k).i, expected[static_cast<size_t>(k)]);
}

TEST(Run, OutputsMustBeWrittenAndInputsMayNot) {
  const ir::Buffer x = ir::make_buffer("X", DType::kI32, {5});
  const ir::Buffer y = ir::make_buffer("Y", DType::kI32, {5});
  const Var i("i");
  const std::vector<Tensor> inputs = {iota({5})};
  const auto partial = run({"p", {x}, {y}, loop(i, 4, ir::make_store(y, {i}, ir::load(x, {i})))}, inputs);
  ASSERT_FALSE(partial.ok());
  EXPECT_EQ(partial.error().message(), "output 'Y': element 4 is never written");
  const auto wrong = run({"p", {x}, {y}, loop(i, 5, ir::make_store(x, {i}, ir::load(x, {i})))}, inputs);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message(), "store to 'X': the buffer is an input");
  EXPECT_EQ(run({"p", {x}, {y}, nullptr}, {}).error().code, ErrorCode::kInvalidArgument);
}

TEST(Run, StridedParameters) {
  const ir::Buffer x = ir::make_buffer("X", DType::kI32, {2, 3}, ir::MemoryScope::kGlobal, {5, 1});
  const ir::Buffer y = ir::make_buffer("Y", DType::kI32, {3, 2}, ir::MemoryScope::kGlobal, {7, 2});
  const Var i("i"), j("j");
  const std::vector<Tensor> inputs = {iota({2, 3})};
  const auto out =
      run({"t", {x}, {y}, loop(i, 3, loop(j, 2, ir::make_store(y, {i, j}, ir::load(x, {j, i}))))}, inputs);
  ASSERT_TRUE(out.ok()) << out.error().message();
  const std::vector<int64_t> expected = {1, 4, 2, 5, 3, 6};
  for (int64_t k = 0; k < 6; ++k) EXPECT_EQ((*out)[0].at(k).i, expected[static_cast<size_t>(k)]);
}

}  // namespace
}  // namespace tensorsmith::lower::interpreter_test
