#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "lower/interpreter.h"
#include "naive_evaluate.h"

namespace tensorsmith::lower::evaluate_test {
namespace {

using ir::Axis;
using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::Var;

Axis axis(const char* name, int64_t extent) { return {Var(name), extent}; }

ir::Workload workload(std::vector<ir::OperationRef> ops, std::vector<ir::Buffer> outputs = {}) {
  if (outputs.empty()) outputs = ops.back()->outputs;
  ir::Workload w{std::move(ops), std::move(outputs)};
  const Status status = ir::verify(w);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
  return w;
}

std::vector<Tensor> random_inputs(const ir::Workload& w, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (const ir::Buffer& b : w.inputs()) inputs.push_back(random_tensor(b->dtype, b->shape, rng));
  return inputs;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.data == b.data;
}

// Compares evaluate and evaluate_points (all elements, and one element alone) with the naive
// evaluator, bit for bit.
void check(const ir::Workload& w, uint64_t seed = 1) {
  const auto inputs = random_inputs(w, seed);
  const auto expected = test::NaiveEvaluator::evaluate(w, inputs);
  const auto actual = evaluate(w, inputs);
  ASSERT_TRUE(actual.ok()) << actual.error().message();
  ASSERT_EQ(actual->size(), expected.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_TRUE(same_bytes((*actual)[k], expected[k])) << "output " << k;
    const int64_t n = expected[k].num_elements();
    if (n == 0) continue;
    std::vector<int64_t> all(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) all[static_cast<size_t>(i)] = n - 1 - i;
    for (const auto& indices : {all, std::vector<int64_t>{n / 2}, std::vector<int64_t>{}}) {
      const auto points = evaluate_points(w, inputs, k, indices);
      ASSERT_TRUE(points.ok()) << points.error().message();
      ASSERT_EQ(points->size(), indices.size());
      for (size_t p = 0; p < indices.size(); ++p) {
        const ir::Scalar e = expected[k].at(indices[p]);
        EXPECT_EQ((*points)[p].i, e.i);
        EXPECT_EQ(std::memcmp(&(*points)[p].f, &e.f, sizeof(double)), 0) << (*points)[p].f << " " << e.f;
      }
    }
  }
}

ir::Workload matmul(int64_t m, int64_t n, int64_t k, DType dtype = DType::kF32) {
  auto a = ir::placeholder("A", dtype, {m, k});
  auto b = ir::placeholder("B", dtype, {k, n});
  const Axis i = axis("i", m), j = axis("j", n), r = axis("k", k);
  auto c = ir::compute("C", {i, j}, {r}, Combiner::kSum,
                       {ir::load(a->output(), {i.var, r.var}) * ir::load(b->output(), {r.var, j.var})});
  return workload({a, b, c});
}

ir::Workload padded_conv(int64_t channels, int64_t size) {
  auto x = ir::placeholder("X", DType::kF32, {1, channels, size, size});
  auto weight = ir::placeholder("W", DType::kF32, {channels, channels, 3, 3}, true);
  const Axis n = axis("n", 1), c = axis("c", channels), h = axis("h", size + 2), v = axis("w", size + 2);
  const Expr inside =
      Expr(h.var) >= 1 && Expr(h.var) < size + 1 && Expr(v.var) >= 1 && Expr(v.var) < size + 1;
  auto pad =
      ir::compute("pad", {n, c, h, v}, {}, Combiner::kNone,
                  {ir::select(inside, ir::load(x->output(), {n.var, c.var, h.var - Expr(1), v.var - Expr(1)}),
                              ir::float_imm(DType::kF32, 0))});
  const Axis n2 = axis("n", 1), o = axis("o", channels), y = axis("y", size), z = axis("x", size);
  const Axis ci = axis("ci", channels), kh = axis("kh", 3), kw = axis("kw", 3);
  auto conv =
      ir::compute("conv", {n2, o, y, z}, {ci, kh, kw}, Combiner::kSum,
                  {ir::load(pad->output(), {n2.var, ci.var, Expr(y.var) + kh.var, Expr(z.var) + kw.var}) *
                   ir::load(weight->output(), {o.var, ci.var, kh.var, kw.var})});
  return workload({x, weight, pad, conv});
}

TEST(Evaluate, Matmul) {
  check(matmul(7, 19, 33));
  check(matmul(1, 1, 200));
  check(matmul(3, 5, 4, DType::kI8));
  check(matmul(13, 17, 4, DType::kF64));
  check(matmul(13, 17, 40, DType::kF16));
  check(matmul(13, 17, 40, DType::kBF16));
  check(matmul(13, 17, 40, DType::kU64));
  check(matmul(5, 5, 0));
  check(matmul(0, 5, 3));
}

TEST(Evaluate, MatmulAgainstPlainLoops) {
  const ir::Workload w = matmul(9, 10, 11);
  const auto inputs = random_inputs(w, 5);
  const auto out = evaluate(w, inputs);
  ASSERT_TRUE(out.ok());
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t j = 0; j < 10; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 11; ++k) sum += inputs[0].at(i * 11 + k).f * inputs[1].at(k * 10 + j).f;
      EXPECT_NEAR((*out)[0].at(i * 10 + j).f, sum, 1e-6);
    }
  }
}

TEST(Evaluate, PaddedConvolution) { check(padded_conv(3, 9)); }

// The padding is inlined: reads of X are guarded by a condition on spatial and reduction axes.
TEST(Evaluate, GuardedReadInReduction) {
  auto x = ir::placeholder("X", DType::kI32, {10});
  const Axis i = axis("i", 100), r = axis("r", 7);
  const Expr at = floordiv(i.var, 10) + Expr(r.var) - Expr(3);
  const Expr inside = Expr(at) >= 0 && Expr(at) < 10;
  auto y = ir::compute("Y", {i}, {r}, Combiner::kSum,
                       {ir::select(inside, ir::load(x->output(), {at}) * ir::load(x->output(), {at}),
                                   ir::int_imm(DType::kI32, -1))});
  check(workload({x, y}));
}

TEST(Evaluate, NestedSelectsAndSharedNodes) {
  auto x = ir::placeholder("X", DType::kI32, {10});
  const Axis i = axis("i", 100);
  const Expr v = i.var;
  Expr shared = ir::load(x->output(), {floormod(v, 10)});
  for (int k = 0; k < 5; ++k) shared = shared + shared;
  const Expr inner = ir::select(v < 9, ir::load(x->output(), {v}) + shared, shared);
  const Expr body = ir::select(v < 50, ir::select(v > 3, inner, shared), inner - shared);
  check(workload({x, ir::compute("Y", {i}, {}, Combiner::kNone, {body})}));
}

// A tree of 2^60 nodes if sharing were lost.
TEST(Evaluate, SharedNodesAreComputedOnce) {
  auto x = ir::placeholder("X", DType::kI64, {10});
  const Axis i = axis("i", 10);
  Expr shared = ir::load(x->output(), {i.var});
  for (int k = 0; k < 60; ++k) shared = ir::select(shared > 0, shared + shared, ir::min(shared, shared));
  const auto y = ir::compute("Y", {i}, {}, Combiner::kNone, {shared});
  const ir::Workload w{{x, y}, {y->output()}};  // ir::verify traverses trees
  std::vector<Tensor> inputs = {Tensor::zeros(DType::kI64, {10})};
  inputs[0].set(3, ir::scalar_int(DType::kI64, 5));
  const auto out = evaluate(w, inputs);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ((*out)[0].at(3).i, int64_t{5} << 60);
  EXPECT_EQ((*out)[0].at(4).i, 0);
}

TEST(Evaluate, Softmax) {
  auto x = ir::placeholder("X", DType::kF32, {5, 70});
  auto row = [] { return axis("i", 5); };
  const Axis i0 = row(), k0 = axis("k", 70);
  auto m = ir::compute("max", {i0}, {k0}, Combiner::kMax, {ir::load(x->output(), {i0.var, k0.var})});
  const Axis i1 = row(), j1 = axis("j", 70);
  auto e = ir::compute("exp", {i1, j1}, {}, Combiner::kNone,
                       {ir::call(ir::Intrinsic::kExp, {ir::load(x->output(), {i1.var, j1.var}) -
                                                       ir::load(m->output(), {i1.var})})});
  const Axis i2 = row(), k2 = axis("k", 70);
  auto s = ir::compute("sum", {i2}, {k2}, Combiner::kSum, {ir::load(e->output(), {i2.var, k2.var})});
  const Axis i3 = row(), j3 = axis("j", 70);
  auto y = ir::compute("Y", {i3, j3}, {}, Combiner::kNone,
                       {ir::load(e->output(), {i3.var, j3.var}) / ir::load(s->output(), {i3.var})});
  const ir::Workload w = workload({x, m, e, s, y}, {y->output(), m->output()});
  check(w);
  const auto out = evaluate(w, random_inputs(w, 2));
  for (int64_t r = 0; r < 5; ++r) {
    double total = 0;
    for (int64_t c = 0; c < 70; ++c) total += (*out)[0].at(r * 70 + c).f;
    EXPECT_NEAR(total, 1, 1e-5);
  }
}

TEST(Evaluate, ArgMaxPrefersTheSmallestIndex) {
  for (const Combiner combiner : {Combiner::kArgMax, Combiner::kArgMin}) {
    for (const DType dtype : {DType::kI8, DType::kF32, DType::kF64, DType::kU64}) {
      auto x = ir::placeholder("X", dtype, {6, 90});
      const Axis i = axis("i", 6), k = axis("k", 90);
      auto y = ir::compute("Y", {i}, {k}, combiner,
                           {ir::load(x->output(), {i.var, k.var}), ir::cast(DType::kI64, k.var)});
      const ir::Workload w = workload({x, y}, {y->outputs[1], y->outputs[0]});
      check(w);
      std::vector<Tensor> inputs = {Tensor::zeros(dtype, {6, 90})};
      inputs[0].set(90 + 7, ir::is_float(dtype) ? ir::scalar_float(dtype, 3) : ir::scalar_int(dtype, 3));
      inputs[0].set(90 + 9, ir::is_float(dtype) ? ir::scalar_float(dtype, 3) : ir::scalar_int(dtype, 3));
      const auto out = evaluate(w, inputs);
      ASSERT_TRUE(out.ok());
      EXPECT_EQ((*out)[0].at(0).i, 0);
      EXPECT_EQ((*out)[0].at(1).i, combiner == Combiner::kArgMax ? 7 : 0);
    }
  }
}

TEST(Evaluate, GatherReadsIndicesFromMemory) {
  auto table = ir::placeholder("T", DType::kF32, {8, 5});
  auto index = ir::placeholder("I", DType::kI32, {40});
  const Axis i = axis("i", 40), j = axis("j", 5);
  auto y = ir::compute("Y", {i, j}, {}, Combiner::kNone,
                       {ir::load(table->output(), {ir::load(index->output(), {i.var}), j.var})});
  const ir::Workload w = workload({table, index, y});
  Rng rng(3);
  std::vector<Tensor> inputs = {random_tensor(DType::kF32, {8, 5}, rng),
                                random_tensor(DType::kI32, {40}, rng, 8)};
  const auto out = evaluate(w, inputs);
  ASSERT_TRUE(out.ok()) << out.error().message();
  EXPECT_TRUE(same_bytes((*out)[0], test::NaiveEvaluator::evaluate(w, inputs)[0]));

  inputs[1].set(17, ir::scalar_int(DType::kI32, 8));
  const auto bad = evaluate(w, inputs);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(bad.error().message(),
            "operation 'Y': read out of range: index 8 of dimension 0 of 'T' with shape [8, 5]");
  const std::vector<int64_t> bad_point = {17 * 5};
  EXPECT_FALSE(evaluate_points(w, inputs, 0, bad_point).ok());
  const std::vector<int64_t> good_point = {16 * 5};
  EXPECT_TRUE(evaluate_points(w, inputs, 0, good_point).ok());
}

// Each operator on each dtype, casts between all pairs.
TEST(Evaluate, EveryOperator) {
  const std::vector<DType> dtypes = {DType::kBool, DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                                     DType::kI32,  DType::kU32, DType::kI64, DType::kU64, DType::kF16,
                                     DType::kBF16, DType::kF32, DType::kF64};
  for (const DType t : dtypes) {
    auto a = ir::placeholder("A", t, {300});
    auto b = ir::placeholder("B", t, {300});
    const Axis i = axis("i", 300);
    const Expr x = ir::load(a->output(), {i.var});
    const Expr y = ir::load(b->output(), {i.var});
    std::vector<Expr> bodies;
    using B = ir::BinaryOp;
    for (B op : {B::kEq, B::kNe, B::kLt, B::kLe, B::kGt, B::kGe}) {
      if (t != DType::kBool || op == B::kEq || op == B::kNe) bodies.push_back(ir::binary(op, x, y));
    }
    if (t == DType::kBool) {
      for (B op : {B::kAnd, B::kOr}) bodies.push_back(ir::binary(op, x, y));
      bodies.push_back(!x);
    } else {
      for (B op : {B::kAdd, B::kSub, B::kMul, B::kDiv, B::kMin, B::kMax})
        bodies.push_back(ir::binary(op, x, y));
      bodies.push_back(-x);
      if (ir::is_int(t)) {
        for (B op : {B::kFloorDiv, B::kFloorMod, B::kBitAnd, B::kBitOr, B::kBitXor, B::kShl, B::kShr}) {
          bodies.push_back(ir::binary(op, x, y));
        }
      } else {
        for (ir::Intrinsic f :
             {ir::Intrinsic::kExp, ir::Intrinsic::kTanh, ir::Intrinsic::kSqrt, ir::Intrinsic::kFloor}) {
          bodies.push_back(ir::call(f, {x}));
        }
        bodies.push_back(ir::call(ir::Intrinsic::kPow, {x, y}));
      }
    }
    for (const DType to : dtypes) bodies.push_back(ir::cast(to, x));
    for (size_t k = 0; k < bodies.size(); ++k) {
      SCOPED_TRACE(std::string(ir::to_string(t)) + " body " + std::to_string(k));
      const ir::Workload w = workload({a, b, ir::compute("Y", {i}, {}, Combiner::kNone, {bodies[k]})});
      // Includes large values, so that operations wrap, saturate and overflow.
      auto inputs = random_inputs(w, 7 + k);
      Rng rng(k);
      for (Tensor& input : inputs) {
        for (int64_t e = 0; e < 300; e += 3) {
          const auto bits = static_cast<int64_t>(rng.next() >> rng.below(64));
          input.set(
              e, ir::is_float(t) ? ir::scalar_float(t, static_cast<double>(bits)) : ir::scalar_int(t, bits));
        }
      }
      const auto out = evaluate(w, inputs);
      ASSERT_TRUE(out.ok());
      EXPECT_TRUE(same_bytes((*out)[0], test::NaiveEvaluator::evaluate(w, inputs)[0]));
    }
  }
}

TEST(Evaluate, RejectsWrongInputs) {
  const ir::Workload w = matmul(3, 4, 5);
  auto inputs = random_inputs(w, 1);
  inputs[1] = Tensor::zeros(DType::kF32, {4, 5});
  const auto bad = evaluate(w, inputs);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message(), "input 'B': expected f32[5, 4], got f32[4, 5]");
  inputs.pop_back();
  EXPECT_EQ(evaluate(w, inputs).error().message(), "input 'B': no tensor was given for it");
  const std::vector<int64_t> beyond = {12};
  EXPECT_EQ(evaluate_points(w, random_inputs(w, 1), 0, beyond).error().code, ErrorCode::kInvalidArgument);
}

// Constant folding and the conformance tests evaluate hundreds of operators.
TEST(Evaluate, IsFastEnough) {
  const ir::Workload w = padded_conv(16, 28);
  const auto inputs = random_inputs(w, 1);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(evaluate(w, inputs).ok());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("mega_ops_per_second", std::to_string(ir::flop_count(w) / seconds * 1e-6));
  std::printf("%.1f Mop/s\n", ir::flop_count(w) / seconds * 1e-6);
  EXPECT_LT(seconds, 5);  // 0.05 s on an idle core
}

// One output of a deep chain of large tensors depends on few elements.
TEST(Evaluate, PointsOfLargeKernelsAreCheap) {
  const ir::Workload w = padded_conv(64, 224);
  std::vector<Tensor> inputs;
  for (const ir::Buffer& b : w.inputs()) inputs.push_back(Tensor::zeros(b->dtype, b->shape));
  inputs[0].set(224 * 100 + 50, ir::scalar_float(DType::kF32, 2));
  inputs[1].set(0 + 4, ir::scalar_float(DType::kF32, 0.5));  // centre of the filter o = 0, ci = 0
  const std::vector<int64_t> points = {224 * 100 + 50, 0, 224 * 100 + 51};
  const auto values = evaluate_points(w, inputs, 0, points);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ((*values)[0].f, 1);
  EXPECT_EQ((*values)[1].f, 0);
  EXPECT_EQ((*values)[2].f, 0);
}

}  // namespace
}  // namespace tensorsmith::lower::evaluate_test
