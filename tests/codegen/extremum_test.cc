// Minimum and maximum of NaN and infinite values, and powers of integers: random schedules on each
// instruction set of this machine, against plain loops with the definition (IEEE 754-2019: NaN
// propagates).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "codegen/runner.h"
#include "lower/lower.h"
#include "support/random_trace.h"

namespace tensorsmith::extremum_test {
namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using lower::Tensor;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// out[i] = combiner over r of x[i, r]
ir::Workload reduction(Combiner combiner, DType dtype, int64_t rows, int64_t columns) {
  ir::Workload w;
  w.operations.push_back(ir::placeholder("x", dtype, {rows, columns}, false));
  const ir::Axis i{ir::Var("i"), rows};
  const ir::Axis r{ir::Var("r"), columns};
  const Expr value = ir::load(w.operations[0]->output(), {i.var, r.var});
  std::vector<Expr> bodies = {value};
  if (combiner == Combiner::kArgMax || combiner == Combiner::kArgMin) bodies.push_back(r.var);
  w.operations.push_back(ir::compute("out", {i}, {r}, combiner, bodies));
  w.outputs = w.operations.back()->outputs;
  return w;
}

// There are few distinct values, so that ties occur; some rows have a NaN, some only NaN, some
// none.
Tensor special_input(DType dtype, int64_t rows, int64_t columns, Rng& rng) {
  Tensor x = Tensor::zeros(dtype, {rows, columns});
  for (int64_t i = 0; i < rows; ++i) {
    const double share = i % 4 == 0 ? 0 : i % 4 == 1 ? 1 : i % 4 == 2 ? 0.05 : 0.5;
    for (int64_t c = 0; c < columns; ++c) {
      double value = static_cast<double>(rng.uniform_int(-6, 6)) / 2;
      if (value == 3) value = kInf;
      if (value == -3) value = -kInf;
      if (rng.uniform() < share) value = rng.uniform() < 0.5 ? kNan : -kNan;
      x.set(i * columns + c, ir::scalar_float(dtype, value));
    }
  }
  return x;
}

struct Best {
  double value = 0;
  int64_t index = 0;
};

Best best_of_row(const Tensor& x, int64_t row, bool is_max) {
  const int64_t columns = x.shape[1];
  std::optional<Best> best;
  for (int64_t c = 0; c < columns; ++c) {
    const double v = x.at(row * columns + c).f;
    if (std::isnan(v)) return {v, c};
    if (!best || (is_max ? v > best->value : v < best->value)) best = Best{v, c};
  }
  return *best;
}

void check_reductions(uint64_t first, uint64_t count) {
  const auto& devices = test::local_devices();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    const Combiner combiner =
        std::array{Combiner::kMax, Combiner::kMin, Combiner::kArgMax, Combiner::kArgMin}[seed % 4];
    const DType dtype = std::array{DType::kF32, DType::kF32, DType::kF64, DType::kF16}[seed / 4 % 4];
    const bool is_max = combiner == Combiner::kMax || combiner == Combiner::kArgMax;
    const int64_t rows = rng.uniform_int(1, 40);
    const int64_t columns = rng.uniform_int(1, 40);
    const ir::Workload w = reduction(combiner, dtype, rows, columns);
    const Tensor inputs[] = {special_input(dtype, rows, columns, rng)};
    test::RandomTraceOptions options;
    options.proposals = 8 + static_cast<int>(rng.below(30));
    const sched::ScheduleBuilder builder = test::random_schedule(w, rng, options);
    const auto lowered = lower::lower(builder.schedule());
    ASSERT_TRUE(lowered.ok()) << lowered.error().message();
    const auto interpreted = lower::evaluate(w, inputs);
    ASSERT_TRUE(interpreted.ok());
    for (const target::Device& device : devices) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " on " + device.name);
      const auto compiled = test::compile_and_run(lowered->program, device, inputs, 2);
      ASSERT_TRUE(compiled.ok()) << compiled.error().message();
      for (const std::vector<Tensor>& outputs : {*compiled, *interpreted}) {
        for (int64_t row = 0; row < rows; ++row) {
          const Best want = best_of_row(inputs[0], row, is_max);
          const double got = outputs[0].at(row).f;
          ASSERT_TRUE(std::isnan(want.value) ? std::isnan(got) : got == want.value)
              << "row " << row << ": got " << got << ", want " << want.value;
          if (outputs.size() > 1) {
            ASSERT_EQ(outputs[1].at(row).i, want.index) << "row " << row;
          }
        }
      }
    }
  }
}

TEST(Extremum, NanWinsInReductionsOfAnySchedule) { check_reductions(1, 120); }

// A value that is always NaN.
TEST(Extremum, ConstantNanWins) {
  for (const int64_t rows : {1, 40}) {
    ir::Workload w = reduction(Combiner::kMax, DType::kF32, rows, 9);
    const ir::Operation& op = *w.operations[1];
    const Expr nan = ir::float_imm(DType::kF32, kNan);
    const Expr body = ir::select(Expr(op.reduce[0].var) == Expr(4), nan, op.bodies[0]);
    w.operations[1] = ir::compute("out", op.spatial, op.reduce, Combiner::kMax, {body});
    w.outputs = w.operations[1]->outputs;
    Rng rng(1);
    const Tensor inputs[] = {lower::random_tensor(DType::kF32, {rows, 9}, rng)};
    sched::ScheduleBuilder builder(w);
    ASSERT_TRUE(builder.apply(sched::Annotate{1, 1, sched::Annotation::kUnroll}).ok());
    const auto lowered = lower::lower(builder.schedule());
    ASSERT_TRUE(lowered.ok());
    for (const target::Device& device : test::local_devices()) {
      const auto got = test::compile_and_run(lowered->program, device, inputs, 1);
      ASSERT_TRUE(got.ok()) << got.error().message();
      for (int64_t i = 0; i < rows; ++i) EXPECT_TRUE(std::isnan((*got)[0].at(i).f)) << device.name;
    }
  }
}

// Elementwise, with constants on either side: Relu, Clip, Max, Min.
TEST(Extremum, NanWinsElementwise) {
  const std::vector<double> specials = {kNan, kInf, -kInf, 0.0, -0.0, 1.5, -1.5, 2.0};
  const auto n = static_cast<int64_t>(specials.size() * specials.size());
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    Tensor a = Tensor::zeros(dtype, {n});
    Tensor b = Tensor::zeros(dtype, {n});
    for (int64_t i = 0; i < n; ++i) {
      a.set(i, ir::scalar_float(dtype, specials[static_cast<size_t>(i) % specials.size()]));
      b.set(i, ir::scalar_float(dtype, specials[static_cast<size_t>(i) / specials.size()]));
    }
    for (const bool is_max : {true, false}) {
      for (const int constant : {-1, 0, 1}) {  // position of the operand 1.5, or -1 for none
        for (const int64_t lanes : {1, 16}) {
          const ir::Buffer x = ir::make_buffer("x", dtype, {n});
          const ir::Buffer y = ir::make_buffer("y", dtype, {n});
          const ir::Buffer out = ir::make_buffer("out", dtype, {n});
          const ir::Var i("i");
          const ir::Var v("v");
          const Expr at = Expr(i) * lanes + Expr(v);
          const Expr left = constant == 0 ? ir::make_const(dtype, 1.5) : ir::load(x, {at});
          const Expr right = constant == 1 ? ir::make_const(dtype, 1.5) : ir::load(y, {at});
          ir::Stmt body = ir::make_store(out, {at}, is_max ? ir::max(left, right) : ir::min(left, right));
          body = ir::make_for({v, lanes, ir::ForKind::kVectorized, {}, 0, body});
          const ir::Program program{
              "extremum", {x, y}, {out}, ir::make_for({i, n / lanes, ir::ForKind::kSerial, {}, 0, body})};
          const Tensor inputs[] = {a, b};
          for (const target::Device& device : test::local_devices()) {
            const auto got = test::compile_and_run(program, device, inputs, 1);
            ASSERT_TRUE(got.ok()) << got.error().message();
            for (int64_t e = 0; e < n; ++e) {
              const double p = constant == 0 ? 1.5 : a.at(e).f;
              const double q = constant == 1 ? 1.5 : b.at(e).f;
              const double want = std::isnan(p) || std::isnan(q) ? kNan
                                  : is_max                       ? std::max(p, q)
                                                                 : std::min(p, q);
              const double is = (*got)[0].at(e).f;
              ASSERT_TRUE(std::isnan(want) ? std::isnan(is) : is == want)
                  << (is_max ? "max(" : "min(") << p << ", " << q << ") = " << is << " on " << device.name;
            }
          }
        }
      }
    }
  }
}

TEST(IntegerPow, MatchesRepeatedProducts) {
  Rng rng(3);
  const int64_t n = 512;
  for (const DType dtype :
       {DType::kI8, DType::kU8, DType::kI16, DType::kI32, DType::kU32, DType::kI64, DType::kU64}) {
    for (const int64_t fixed : {-1, 0, 1, 2, 3, 7, 63, 100}) {  // a constant exponent, or -1: one per element
      Tensor a = Tensor::zeros(dtype, {n});
      Tensor b = Tensor::zeros(dtype, {n});
      for (int64_t i = 0; i < n; ++i) {
        a.set(i, ir::scalar_int(dtype, rng.uniform_int(-20, 20)));
        b.set(i, ir::scalar_int(dtype, rng.uniform_int(0, 70)));
      }
      const ir::Buffer x = ir::make_buffer("x", dtype, {n});
      const ir::Buffer y = ir::make_buffer("y", dtype, {n});
      const ir::Buffer out = ir::make_buffer("out", dtype, {n});
      const ir::Var i("i");
      const ir::Var v("v");
      const Expr at = Expr(i) * 16 + Expr(v);
      const Expr exponent = fixed < 0 ? ir::load(y, {at}) : ir::int_imm(dtype, fixed);
      ir::Stmt body = ir::make_store(out, {at}, ir::call(ir::Intrinsic::kPow, {ir::load(x, {at}), exponent}));
      body = ir::make_for({v, 16, ir::ForKind::kVectorized, {}, 0, body});
      const ir::Program program{
          "power", {x, y}, {out}, ir::make_for({i, n / 16, ir::ForKind::kSerial, {}, 0, body})};
      const Tensor inputs[] = {a, b};
      for (const target::Device& device : test::local_devices()) {
        const auto got = test::compile_and_run(program, device, inputs, 1);
        ASSERT_TRUE(got.ok()) << got.error().message();
        for (int64_t e = 0; e < n; ++e) {
          ir::Scalar want = ir::scalar_int(dtype, 1);
          const int64_t times = fixed < 0 ? b.at(e).i : fixed;
          for (int64_t k = 0; k < times; ++k) want = ir::eval_binary(ir::BinaryOp::kMul, want, a.at(e));
          ASSERT_EQ((*got)[0].at(e).i, want.i)
              << a.at(e).i << "^" << times << " " << ir::to_string(dtype) << " on " << device.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensorsmith::extremum_test
