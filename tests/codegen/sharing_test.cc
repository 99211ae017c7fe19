// Shared subexpressions of a stored value are computed once: code size and compile time grow with
// the nodes of the graph, not with the tree of 2^40.
#include <gtest/gtest.h>

#include "codegen/runner.h"

namespace tensorsmith::sharing_test {
namespace {

using ir::DType;
using ir::Expr;

constexpr int kLength = 40;

Expr f32(double value) { return ir::float_imm(DType::kF32, value); }

// Y[i] = link(link(...X[i])) in a loop of the kind.
template <class Link>
void check(ir::ForKind kind, const Link& link) {
  const int64_t extent = kind == ir::ForKind::kUnrolled ? 2 : 20;
  const ir::Buffer x = ir::make_buffer("X", DType::kF32, {extent});
  const ir::Buffer y = ir::make_buffer("Y", DType::kF32, {extent});
  const ir::Var i("i");
  Expr value = ir::load(x, {i});
  for (int k = 0; k < kLength; ++k) value = link(value, Expr(i));
  const ir::Program program{
      "chain", {x}, {y}, ir::make_for({i, extent, kind, {}, 0, ir::make_store(y, {i}, value)})};
  Rng rng(1);
  const std::vector<lower::Tensor> inputs = {lower::random_tensor(DType::kF32, {extent}, rng)};
  const auto want = lower::run(program, inputs);
  ASSERT_TRUE(want.ok()) << want.error().message();
  for (const target::Device& device : test::local_devices()) {
    const auto got = test::compile_and_run(program, device, inputs);
    ASSERT_TRUE(got.ok()) << got.error().message();
    EXPECT_EQ(test::compare((*got)[0], (*want)[0], 1e-4, 1e-5), "") << device.name;
  }
}

constexpr ir::ForKind kKinds[] = {ir::ForKind::kSerial, ir::ForKind::kVectorized, ir::ForKind::kUnrolled,
                                  ir::ForKind::kParallel};

TEST(CodegenSharing, Values) {
  for (const ir::ForKind kind : kKinds)
    check(kind, [](const Expr& x, const Expr&) {
      return x * (f32(1.5) / (f32(1) + ir::call(ir::Intrinsic::kExp, {-x})));
    });
}

// Conditions that differ between lanes, and uniform ones; both sides share subexpressions with the
// code around the select.
TEST(CodegenSharing, Selects) {
  for (const ir::ForKind kind : kKinds)
    check(kind, [](const Expr& x, const Expr& i) {
      return ir::select(x < f32(0.5), x + f32(0.25), ir::select(i < 7, x * x, x)) * f32(0.75);
    });
}

// The expensive side is a branch, and values computed in it are not available after it.
TEST(CodegenSharing, Branches) {
  for (const ir::ForKind kind : kKinds)
    check(kind, [](const Expr& x, const Expr&) {
      const Expr deep = ir::call(ir::Intrinsic::kTanh, {ir::call(ir::Intrinsic::kExp, {x})});
      return ir::select(x < f32(0.5), deep * deep, x) + x * f32(0.125);
    });
}

// Index expressions are split into sums.
TEST(CodegenSharing, Indices) {
  for (const ir::ForKind kind : kKinds)
    check(kind, [](const Expr& x, const Expr& i) {
      const Expr whole = ir::cast(DType::kI64, x * f32(3));
      const Expr mixed = ir::floormod(whole * whole + i, 7) * whole;
      return ir::cast(DType::kF32, mixed - whole) * f32(0.125) + x * f32(0.5);
    });
}

}  // namespace
}  // namespace tensorsmith::sharing_test
