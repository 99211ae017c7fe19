// Which axes are merged and which must not be, and that every value and its place stay the same.
#include "ir/collapse_axes.h"

#include <gtest/gtest.h>

#include "ir/structural.h"
#include "ir/text.h"
#include "lower/interpreter.h"
#include "support/random_workload.h"
#include "support/standard_workloads.h"

namespace tensorsmith::ir::collapse_axes_test {
namespace {

Workload parsed(const std::string& text) {
  auto workload = parse_workload(text);
  EXPECT_TRUE(workload.ok()) << workload.error().message();
  return workload.value();
}

void expect_collapses(const std::string& before, const std::string& after) {
  const Workload got = collapse_axes(parsed(before));
  ASSERT_TRUE(verify(got).ok()) << verify(got).error().message();
  EXPECT_TRUE(structural_equal(got, parsed(after))) << print(got);
}

void expect_same_bytes(const Workload& before, const Workload& after, uint64_t seed) {
  ASSERT_TRUE(verify(after).ok()) << verify(after).error().message();
  const auto inputs = before.inputs();
  const auto collapsed = after.inputs();
  ASSERT_EQ(inputs.size(), collapsed.size());
  Rng rng(seed);
  std::vector<lower::Tensor> a;
  std::vector<lower::Tensor> b;
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(inputs[i]->name, collapsed[i]->name);
    a.push_back(lower::random_tensor(inputs[i]->dtype, inputs[i]->shape, rng));
    b.push_back(a.back());
    b.back().shape = collapsed[i]->shape;
  }
  const auto expected = lower::evaluate(before, a);
  const auto got = lower::evaluate(after, b);
  ASSERT_TRUE(expected.ok()) << expected.error().message();
  ASSERT_TRUE(got.ok()) << got.error().message();
  ASSERT_EQ(expected->size(), got->size());
  for (size_t i = 0; i < got->size(); ++i) EXPECT_EQ((*expected)[i].data, (*got)[i].data) << print(after);
}

size_t axes_of(const Workload& workload) {
  size_t count = 0;
  for (const OperationRef& op : workload.operations) count += op->spatial.size() + op->reduce.size();
  return count;
}

TEST(CollapseAxes, PixelsOfAPointwiseConvolution) {
  expect_collapses(R"(workload {
  input x: f32[2, 8, 5, 7]
  const w: f32[6, 8, 1, 1]
  const b: f32[6]
  input r: f32[2, 6, 5, 7]
  conv: f32[n: 2, k: 6, h: 5, w: 7] = sum{c: 8} x[n, c, h, w] * w[k, c, 0, 0]
  bias: f32[n: 2, k: 6, h: 5, w: 7] = conv[n, k, h, w] + b[k]
  add: f32[n: 2, k: 6, h: 5, w: 7] = bias[n, k, h, w] + r[n, k, h, w]
  relu: f32[n: 2, k: 6, h: 5, w: 7] = max(0.0, add[n, k, h, w])
  output relu
})",
                   R"(workload {
  input x: f32[2, 8, 35]
  const w: f32[6, 8, 1, 1]
  const b: f32[6]
  input r: f32[2, 6, 35]
  conv: f32[n: 2, k: 6, p: 35] = sum{c: 8} x[n, c, p] * w[k, c, 0, 0]
  bias: f32[n: 2, k: 6, p: 35] = conv[n, k, p] + b[k]
  add: f32[n: 2, k: 6, p: 35] = bias[n, k, p] + r[n, k, p]
  relu: f32[n: 2, k: 6, p: 35] = max(0.0, add[n, k, p])
  output relu
})");
}

TEST(CollapseAxes, ElementwiseBecomesOneAxis) {
  expect_collapses(R"(workload {
  input x: f32[2, 3, 4]
  const c: f32[2, 3, 4]
  y: f32[i: 2, j: 3, k: 4] = x[i, j, k] + c[i, j, k]
  z: f32[i: 2, j: 3, k: 4] = max(0.0, y[i, j, k]) * x[i, j, k]
  output y
  output z
})",
                   R"(workload {
  input x: f32[24]
  const c: f32[24]
  y: f32[i: 24] = x[i] + c[i]
  z: f32[i: 24] = max(0.0, y[i]) * x[i]
  output y
  output z
})");
}

TEST(CollapseAxes, ReductionAxesOfAGlobalPoolMerge) {
  expect_collapses(R"(workload {
  input x: f32[2, 3, 4, 5]
  pool: f32[n: 2, c: 3] = sum{h: 4, w: 5} x[n, c, h, w]
  output pool
})",
                   R"(workload {
  input x: f32[6, 20]
  pool: f32[nc: 6] = sum{p: 20} x[nc, p]
  output pool
})");
}

TEST(CollapseAxes, OneOperationDecidesForAllThatItIsTiedTo) {
  // The last operation reads only y's rows, so the axes stay separate back to x.
  const Workload w = parsed(R"(workload {
  input x: f32[4, 5]
  y: f32[i: 4, j: 5] = x[i, j] * 2.0
  z: f32[i: 4] = sum{j: 5} y[i, j]
  output z
})");
  EXPECT_TRUE(structural_equal(collapse_axes(w), w));
}

TEST(CollapseAxes, WhatMustStayApart) {
  const char* const bodies[] = {
      "x[i, j] + b[j]",                            // broadcast over the rows
      "x[i, j] + r[i]",                            // broadcast over the columns
      "x[i, j] + t[j, i]",                         // transposed
      "x[i, j] + big[i, j]",                       // not the whole dimension
      "x[i, j] + x[i, 4 - j]",                     // mirrored
      "x[i, j] + x[3 - i, j]",                     // mirrored
      "x[i, j] + f32(j)",                          // the index as a value
      "select(i < 2, x[i, j], 0.0)",               // a condition on one axis
      "x[i, j] + b[select(x[i, j] > 0.0, i, 0)]",  // inside another index
      "x[i, j] + wide[i * 2, j]",                  // strided
  };
  for (const std::string body : bodies) {
    const Workload w = parsed(R"(workload {
  input x: f32[4, 5]
  input b: f32[5]
  input r: f32[4]
  input t: f32[5, 4]
  input big: f32[4, 6]
  input wide: f32[8, 5]
  y: f32[i: 4, j: 5] = )" + body +
                              R"(
  output y
})");
    const Workload got = collapse_axes(w);
    EXPECT_EQ(got.outputs.front()->shape, (std::vector<int64_t>{4, 5})) << body;
    EXPECT_EQ(got.inputs().front()->shape, (std::vector<int64_t>{4, 5})) << body;
    expect_same_bytes(w, got, 1);
  }
}

TEST(CollapseAxes, PaddedAndStridedConvolutionsKeepTheirImage) {
  test::standard::Conv2d strided;
  strided.kh = strided.kw = 1;
  strided.pad = 0;
  strided.stride = 2;
  for (const auto& shape : {test::standard::Conv2d{}, strided}) {
    const Workload w = test::standard::conv2d_bias_relu(shape);
    const Workload got = collapse_axes(w);
    EXPECT_EQ(got.outputs.front()->shape, w.outputs.front()->shape);
    EXPECT_EQ(got.inputs().front()->shape, w.inputs().front()->shape);
  }
}

TEST(CollapseAxes, RandomWorkloadsKeepEveryByte) {
  int merged = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Workload before = test::random_workload(seed);
    const Workload after = collapse_axes(before);
    if (axes_of(after) < axes_of(before)) ++merged;
    EXPECT_DOUBLE_EQ(flop_count(after), flop_count(before));
    EXPECT_TRUE(structural_equal(collapse_axes(after), after)) << print(after);  // no further axes can be
                                                                                 // merged
    expect_same_bytes(before, after, seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(merged, 40);
}

}  // namespace
}  // namespace tensorsmith::ir::collapse_axes_test
