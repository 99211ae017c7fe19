// Which workloads compute the slices of their outermost axis independently, and that the workload
// for a slice computes exactly that slice.
#include "ir/slice_workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ir/text.h"
#include "lower/interpreter.h"
#include "support/random_workload.h"

namespace tensorsmith::ir::slice_workload_test {
namespace {

Workload parsed(const std::string& text) {
  auto workload = parse_workload(text);
  EXPECT_TRUE(workload.ok()) << workload.error().message();
  return workload.value();
}

// Returns the s-th of `parts` pieces of memory.
lower::Tensor piece(const lower::Tensor& whole, const std::vector<int64_t>& shape, int64_t s) {
  lower::Tensor tensor = lower::Tensor::zeros(whole.dtype, shape);
  std::memcpy(tensor.data.data(), whole.data.data() + static_cast<size_t>(s) * tensor.data.size(),
              tensor.data.size());
  return tensor;
}

// Checks by the interpreter that the outputs of all parts, concatenated, are those of the whole.
// Inputs are random; constants that are sliced repeat one slice.
void expect_parts_are_the_whole(const Workload& workload, const WorkloadSlice& slice, int64_t slices,
                                int64_t parts, uint64_t seed) {
  ASSERT_TRUE(verify(slice.workload).ok()) << verify(slice.workload).error().message();
  Rng rng(seed);
  std::vector<lower::Tensor> inputs;
  const auto buffers = workload.inputs();
  ASSERT_EQ(slice.sliced.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    inputs.push_back(lower::random_tensor(buffers[i]->dtype, buffers[i]->shape, rng));
    const OperationRef& op = workload.operations[*workload.producer_of(buffers[i].get())];
    if (!op->is_constant || !slice.sliced[i]) continue;
    auto& data = inputs.back().data;
    const size_t bytes = data.size() / static_cast<size_t>(slices);
    for (size_t at = bytes; at < data.size(); ++at) data[at] = data[at - bytes];
  }
  const auto whole = lower::evaluate(workload, inputs);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  for (int64_t s = 0; s < parts; ++s) {
    std::vector<lower::Tensor> some;
    for (size_t i = 0; i < buffers.size(); ++i)
      some.push_back(slice.sliced[i] ? piece(inputs[i], slice.workload.inputs()[i]->shape, s) : inputs[i]);
    const auto part = lower::evaluate(slice.workload, some);
    ASSERT_TRUE(part.ok()) << part.error().message() << print(slice.workload);
    for (size_t o = 0; o < whole->size(); ++o)
      EXPECT_EQ(piece((*whole)[o], slice.workload.outputs[o]->shape, s).data, (*part)[o].data)
          << "part " << s << " of " << print(workload) << "was" << print(slice.workload);
  }
}

void expect_slices(const std::string& text, const std::vector<bool>& sliced) {
  const Workload workload = parsed(text);
  for (const int64_t parts : {2, 3, 6}) {
    const auto slice = slice_workload(workload, 6, parts);
    ASSERT_TRUE(slice.has_value()) << text;
    EXPECT_EQ(slice->sliced, sliced) << text;
    expect_parts_are_the_whole(workload, *slice, 6, parts, 11);
  }
}

void expect_none(const std::string& text) {
  EXPECT_FALSE(slice_workload(parsed(text), 6, 2).has_value()) << text;
}

TEST(SliceWorkload, ConvolutionsPoolsAndProducts) {
  expect_slices(R"(workload { input X: f32[6, 2, 5, 5] const W: f32[3, 2, 3, 3] const b: f32[3]
    pad: f32[n: 6, c: 2, h: 7, w: 7] = select(h >= 1 && h < 6 && w >= 1 && w < 6, X[n, c, h - 1, w - 1], 0.0)
    conv: f32[n: 6, f: 3, y: 5, x: 5] = sum{rc: 2, ry: 3, rx: 3} pad[n, rc, y + ry, x + rx] * W[f, rc, ry, rx]
    bias: f32[n: 6, f: 3, y: 5, x: 5] = max(0.0, conv[n, f, y, x] + b[f]) output bias })",
                {true, false, false});
  expect_slices(R"(workload { input X: f32[24, 5, 5]
    pool: f32[nc: 24, y: 2, x: 2] = max{ry: 3, rx: 3} X[nc, y * 2 + ry, x * 2 + rx] output pool })",
                {true});
  // Rows of several images: 4 per image.
  expect_slices(R"(workload { input A: f32[24, 5] const B: f32[5, 3]
    C: f32[i: 24, j: 3] = sum{k: 5} A[i, k] * B[k, j] output C })",
                {true, false});
  expect_slices(
      R"(workload { input A: f32[6, 5] best, best.index: (f32, i64)[i: 6] = argmax{k: 5} (A[i, k], k)
    output best, best.index })",
      {true});
}

TEST(SliceWorkload, OtherShapesOfTheSameMemory) {
  expect_slices(R"(workload { input A: f32[1, 6, 4, 3] const s: f32[4]
    B: f32[i: 72] = A[0, i // 12, i // 3 % 4, i % 3] * s[i // 3 % 4] output B })",
                {true, false});
  expect_slices(
      R"(workload { input A: f32[72] B: f32[n: 6, w: 3, h: 4] = A[n * 12 + h * 3 + w] + 1.0 output B })",
      {true});
}

TEST(SliceWorkload, ReadsAtIndices) {
  expect_slices(R"(workload { input I: i64[6, 4] const T: f32[9, 3]
    G: f32[n: 6, s: 4, d: 3] = T[min(max(I[n, s], 0), 8), d] output G })",
                {true, false});
}

TEST(SliceWorkload, ConstantsOfEachSlice) {
  expect_slices(R"(workload { input X: f32[6, 4] const C: f32[6, 4] const D: f32[6, 4]
    S: f32[j: 4] = sum{i: 6} D[i, j]
    Y: f32[n: 6, j: 4] = X[n, j] + C[n, j] * S[j] output Y })",
                {true, true, false});
  expect_none("workload { input X: f32[6, 4] const C: f32[6, 4] Y: f32[n: 6, j: 4] = X[n, j] output Y, C }");
  // The constant is read both sliced and as a whole.
  expect_none(R"(workload { input X: f32[6, 4] const C: f32[6, 4]
    S: f32[j: 4] = sum{i: 6} C[i, j] Y: f32[n: 6, j: 4] = X[n, j] + C[n, j] * S[j] output Y })");
  expect_none(R"(workload { input X: f32[6, 4] const C: f32[6, 4]
    Y: f32[n: 6, j: 4] = X[n, j] + C[n, j] * C[0, j] output Y })");
}

TEST(SliceWorkload, SlicesThatMeet) {
  expect_none("workload { input X: f32[6, 4] S: f32[j: 4] = sum{i: 6} X[i, j] output S }");
  expect_none("workload { input X: f32[6, 4] Y: f32[n: 6, j: 4] = X[5 - n, j] output Y }");
  expect_none("workload { input X: f32[6, 4] Y: f32[n: 6, j: 4] = X[max(n - 1, 0), j] output Y }");
  expect_none("workload { input X: f32[6, 4] Y: f32[n: 6, j: 4] = X[0, j] output Y }");
  expect_none("workload { input X: f32[6, 4] Y: f32[n: 6, j: 4] = X[n, j] * f32(n) output Y }");
  expect_none("workload { input X: f32[6, 4] Y: f32[n: 6, j: 4] = select(n < 3, X[n, j], 0.0) output Y }");
  expect_none("workload { input X: f32[6, 6] Y: f32[n: 6, j: 6] = X[j, n] output Y }");
  expect_none("workload { input X: f32[6, 4] Y: f32[n: 12, j: 4] = X[n // 2, j] + f32(n % 4) output Y }");
  // The step is right, but a row of the next slice is read.
  expect_none(R"(workload { input X: f32[12, 4]
    Y: f32[n: 12, j: 4] = select(n < 11, X[min(n + 1, 11), j], 0.0) output Y })");
  expect_none(
      R"(workload { input X: f32[18, 4] Y: f32[n: 12, j: 4] = sum{k: 3} X[n // 2 * 3 + n % 2 + k - 1, j]
    output Y })");
  // The extent cannot be divided into slices.
  expect_none("workload { input X: f32[4, 6] Y: f32[n: 4, j: 6] = X[n, j] output Y }");
  expect_none("workload { input X: f32[6, 4] Y: f32[j: 4, n: 6] = X[n, j] output Y }");
}

// Every workload that can be sliced computes the same.
TEST(SliceWorkload, RandomWorkloads) {
  int sliced = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const Workload workload = test::random_workload(seed, {.max_operations = 3});
    const auto& shape = workload.outputs[0]->shape;
    const auto outer = std::find_if(shape.begin(), shape.end(), [](int64_t extent) { return extent != 1; });
    if (outer == shape.end()) continue;
    for (int64_t slices = 2; slices <= *outer; ++slices) {
      if (*outer % slices != 0) continue;
      const auto slice = slice_workload(workload, slices, slices);
      if (!slice) continue;
      ++sliced;
      expect_parts_are_the_whole(workload, *slice, slices, slices, seed);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(sliced, 100);
}

}  // namespace
}  // namespace tensorsmith::ir::slice_workload_test
