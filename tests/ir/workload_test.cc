// Construction and verification of workloads, traversal helpers, operation counts.
#include "ir/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/analysis.h"

namespace tensorsmith::ir::workload_test {
namespace {

using ::testing::HasSubstr;

Workload matmul(int64_t m, int64_t n, int64_t k) {
  const OperationRef a = placeholder("A", DType::kF32, {m, k});
  const OperationRef b = placeholder("B", DType::kF32, {k, n}, true);
  const Var i("i");
  const Var j("j");
  const Var r("k");
  const OperationRef c = compute("C", {{i, m}, {j, n}}, {{r, k}}, Combiner::kSum,
                                 {load(a->output(), {i, r}) * load(b->output(), {r, j})});
  return {{a, b, c}, {c->output()}};
}

TEST(Workload, MatmulVerifiesAndCountsTwoPerMultiplyAdd) {
  const Workload w = matmul(3, 4, 5);
  EXPECT_TRUE(verify(w).ok());
  EXPECT_EQ(flop_count(w), 2.0 * 3 * 4 * 5);
  ASSERT_EQ(w.inputs().size(), 2u);
  EXPECT_EQ(w.producer_of(w.outputs[0].get()), 2u);
  EXPECT_EQ(w.outputs[0]->shape, (std::vector<int64_t>{3, 4}));
}

TEST(Workload, ReportsWhatIsWrong) {
  const Workload good = matmul(3, 4, 5);
  const auto reason = [](const Workload& w) {
    const Status s = verify(w);
    EXPECT_FALSE(s.ok());
    if (s.ok()) return std::string();
    EXPECT_EQ(s.error().code, ErrorCode::kInvalidArgument);
    return s.error().message();
  };
  EXPECT_THAT(reason({{good.operations[0], good.operations[2]}, {}}), HasSubstr("reads 'B'"));
  EXPECT_THAT(reason({{good.operations[2], good.operations[0], good.operations[1]}, {}}),
              HasSubstr("no earlier"));
  EXPECT_THAT(reason({{good.operations[0], good.operations[0]}, {}}), HasSubstr("used twice"));
  EXPECT_THAT(reason({{good.operations[0]}, good.outputs}), HasSubstr("not defined"));
  EXPECT_THAT(reason({good.operations, {good.outputs[0], good.outputs[0]}}), HasSubstr("output twice"));

  Operation op = *good.operations[2];
  const auto with = [&](const Operation& changed) {
    Workload w = good;
    w.operations[2] = std::make_shared<const Operation>(changed);
    w.outputs = w.operations[2]->outputs;
    return w;
  };
  op.bodies = {float_imm(DType::kF32, 1), float_imm(DType::kF32, 1)};
  EXPECT_THAT(reason(with(op)), HasSubstr("output"));
  op = *good.operations[2];
  op.bodies = {cast(DType::kF32, Var("stranger"))};
  EXPECT_THAT(reason(with(op)), HasSubstr("'stranger'"));
  op = *good.operations[2];
  op.bodies = {float_imm(DType::kF64, 1)};
  EXPECT_THAT(reason(with(op)), HasSubstr("dtype"));
  op = *good.operations[2];
  op.combiner = Combiner::kNone;
  EXPECT_THAT(reason(with(op)), HasSubstr("given together"));
  op = *good.operations[2];
  op.reduce = {op.spatial[0]};
  EXPECT_THAT(reason(with(op)), HasSubstr("is used twice"));
  for (const auto& wrong :
       {placeholder("W", DType::kF32, {2, 2}, true, true), placeholder("W", DType::kI8, {2, 2}, false, true)})
    EXPECT_THAT(reason({{wrong}, {}}), HasSubstr("only a constant of i8 or u8 can have a reduced range"));
  EXPECT_THAT(reason(matmul(int64_t{1} << 40, int64_t{1} << 40, 1)), HasSubstr("too"));
}

TEST(Workload, ArgMaxHasTwoOutputs) {
  const OperationRef a = placeholder("A", DType::kF32, {3, 7});
  const Var i("i");
  const Var k("k");
  const OperationRef best =
      compute("best", {{i, 3}}, {{k, 7}}, Combiner::kArgMax, {load(a->output(), {i, k}), Expr(k)});
  const Workload w{{a, best}, best->outputs};
  EXPECT_TRUE(verify(w).ok());
  EXPECT_EQ(best->outputs[1]->name, "best.index");
  EXPECT_EQ(best->outputs[1]->dtype, DType::kI64);
  EXPECT_EQ(flop_count(w), 21);
}

TEST(Workload, IdentityIsNeutral) {
  EXPECT_EQ(as_int(identity_of(Combiner::kMax, DType::kI8)), -128);
  EXPECT_EQ(as_int(identity_of(Combiner::kMin, DType::kI8)), 127);
  EXPECT_EQ(as_int(identity_of(Combiner::kMax, DType::kU8)), 0);
  EXPECT_EQ(as_int(identity_of(Combiner::kMin, DType::kU8)), 255);
  EXPECT_EQ(as_int(identity_of(Combiner::kMax, DType::kI64)), INT64_MIN);
  EXPECT_EQ(as_int(identity_of(Combiner::kMin, DType::kI64)), INT64_MAX);
  EXPECT_EQ(as_int(identity_of(Combiner::kMin, DType::kU64)), -1);
  EXPECT_EQ(as<FloatImm>(identity_of(Combiner::kMax, DType::kF32))->value, -INFINITY);
  EXPECT_EQ(as_int(identity_of(Combiner::kMin, DType::kBool)), 1);
}

TEST(Workload, HugeShapesSaturate) {
  const Buffer b = make_buffer("b", DType::kF32, {INT64_MAX, INT64_MAX});
  EXPECT_EQ(b->num_elements(), INT64_MAX);
  EXPECT_EQ(b->allocation_elements(), INT64_MAX);
  EXPECT_EQ(make_buffer("s", DType::kF32, {4, 3}, MemoryScope::kGlobal, {8, 1})->allocation_elements(), 27);
  EXPECT_EQ(make_buffer("s", DType::kF32, {4, 0}, MemoryScope::kGlobal, {8, 1})->allocation_elements(), 0);
  EXPECT_EQ(make_buffer("c", DType::kF32, {4, 3, 5})->effective_strides(), (std::vector<int64_t>{15, 5, 1}));
}

TEST(Builders, CheckDtypes) {
  const Expr i = Var("i");
  const Expr f = float_imm(DType::kF32, 1);
  EXPECT_THROW(i + f, InternalError);
  EXPECT_THROW(floordiv(f, f), InternalError);
  EXPECT_THROW(i && i, InternalError);
  EXPECT_THROW(select(i, f, f), InternalError);
  EXPECT_THROW(call(Intrinsic::kExp, {i}), InternalError);
  EXPECT_THROW(call(Intrinsic::kDot2, {f, f}), InternalError);
  EXPECT_THROW(call(Intrinsic::kPair, {f, f}), InternalError);
  EXPECT_THROW(load(make_buffer("b", DType::kF32, {3}), {}), InternalError);
  EXPECT_TRUE((i + 0).same_as(i));
  EXPECT_TRUE((i * 1).same_as(i));
  EXPECT_EQ(as_int(Expr(3) * 4 + 5), 17);
  EXPECT_EQ(as_int(Expr(3) < Expr(4)), 1);
}

TEST(Analysis, SubstituteKeepsUntouchedNodes) {
  const Var i("i");
  const Var j("j");
  const Buffer b = make_buffer("b", DType::kF32, {8, 8});
  const Expr e = load(b, {Expr(i) + 1, Expr(j) * 2});
  EXPECT_TRUE(substitute(e, VarMap{{Var("other").get(), Expr(0)}}).same_as(e));
  const Expr changed = substitute(e, VarMap{{i.get(), Expr(3)}});
  EXPECT_EQ(as_int(as<Load>(changed)->indices[0]), 4);
  EXPECT_TRUE(as<Load>(changed)->indices[1].same_as(as<Load>(e)->indices[1]));
  EXPECT_TRUE(uses_var(e, j));
  EXPECT_FALSE(uses_var(changed, i));
  EXPECT_EQ(loads_of(e + e).size(), 1u);  // the same node
  const Stmt s = make_store(b, {i, j}, e);
  EXPECT_EQ(substitute(s, VarMap{{Var("other").get(), Expr(0)}}), s);
  EXPECT_NE(substitute(s, VarMap{{j.get(), Expr(0)}}), s);
}

}  // namespace
}  // namespace tensorsmith::ir::workload_test
