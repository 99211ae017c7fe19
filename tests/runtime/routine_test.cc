// Routines against plain loops over the definition of the operators.
#include "runtime/routine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/dtype.h"
#include "base/rng.h"
#include "runtime/kernel_pool.h"

namespace tensorsmith::runtime::routine_test {
namespace {

constexpr int64_t kF32 = static_cast<int64_t>(DType::kF32), kI32 = static_cast<int64_t>(DType::kI32),
                  kI16 = static_cast<int64_t>(DType::kI16), kBF16 = static_cast<int64_t>(DType::kBF16);

// Runs a routine with the workspaces that it demands, on so many threads.
Status run(const RoutineCall& call, const std::vector<void*>& buffers, int threads) {
  const auto demands = demands_of(call);
  if (!demands.ok()) return demands.error();
  EXPECT_EQ(demands->buffer_bytes.size(), buffers.size());
  KernelPool pool(threads);
  const int64_t stride = (demands->thread_bytes + 63) / 64 * 64;
  std::vector<int64_t> shared(demands->shared_bytes / 8 + 1), own(stride * threads / 8 + 1);
  TensorsmithKernelContext context{};
  context.parallel_for = &KernelPool::parallel_for_abi;
  context.pool = &pool;
  context.num_threads = threads;
  context.shared_workspace = shared.data();
  context.thread_workspace = own.data();
  context.thread_workspace_stride = stride;
  return find_routine(call.name)->run(context, call.parameters, buffers.data());
}

int64_t sum_of_extents(int64_t outer, int64_t length, int64_t inner) { return outer * length * inner; }

TEST(Routine, PrefixScanIsTheSumOrProductOfThePreviousElements) {
  Rng rng(11);
  struct Size {
    int64_t outer, length, inner;
  };
  for (const auto& [outer, length, inner] :
       {Size{1, 70000, 1}, {3, 17, 1}, {2, 40, 130}, {1, 300, 200}, {4, 1, 5}}) {
    for (const int flags : {0, 1, 2, 3, 4, 5}) {
      const bool exclusive = (flags & 1) != 0, reverse = (flags & 2) != 0, product = (flags & 4) != 0;
      const int64_t elements = sum_of_extents(outer, length, inner);
      std::vector<int16_t> x(elements), y(elements, 77);
      for (int16_t& value : x) value = static_cast<int16_t>(rng.uniform_int(-300, 300));
      ASSERT_TRUE(run({"prefix_scan", {kI16, outer, length, inner, product, exclusive, reverse}},
                      {x.data(), y.data()}, 3)
                      .ok());
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; i += 37) {
          uint32_t total = product ? 1 : 0;  // wraps around as the elements do
          for (int64_t step = 0; step < length; ++step) {
            const int64_t at = (o * length + (reverse ? length - 1 - step : step)) * inner + i;
            const auto value = static_cast<uint32_t>(static_cast<int32_t>(x[at]));
            const uint32_t next = product ? total * value : total + value;
            ASSERT_EQ(y[at], static_cast<int16_t>(exclusive ? total : next)) << at << " flags " << flags;
            total = next;
          }
        }
      }
    }
  }
}

TEST(Routine, PrefixScanOfShortFloatsIsRoundedOnce) {
  // In bf16, 256 + 1 is 256; in f32 the sum goes on.
  std::vector<uint16_t> x(600, 0x3f80), y(600);
  ASSERT_TRUE(run({"prefix_scan", {kBF16, 1, 600, 1, 0, 0, 0}}, {x.data(), y.data()}, 1).ok());
  EXPECT_EQ(y[511], 0x4400);  // 512
  EXPECT_EQ(y[599], 0x4416);  // 600
}

TEST(Routine, TopKIsTheBeginningOfAStableSort) {
  Rng rng(12);
  struct Size {
    int64_t outer, length, inner, k;
  };
  for (const auto& [outer, length, inner, k] : {Size{1, 24000, 1, 300},
                                                {1, 20000, 1, 1},
                                                {2, 3000, 3, 3000},
                                                {5, 33, 2, 7},
                                                {3, 5000, 1, 0},
                                                {1, 60000, 1, 5}}) {
    for (const bool largest : {false, true}) {
      std::vector<float> x(outer * length * inner);
      for (float& value : x) {
        const int64_t kind = rng.uniform_int(0, 20);
        value = kind == 0   ? std::numeric_limits<float>::quiet_NaN()
                : kind == 1 ? -std::numeric_limits<float>::infinity()
                : kind == 2 ? -0.0F
                            : static_cast<float>(rng.uniform_int(-40, 40));  // many are equal
      }
      std::vector<float> values(outer * k * inner + 1, 99);
      std::vector<int64_t> indices(outer * k * inner + 1, -5);
      const std::vector<int64_t> parameters = {kF32, outer, length, inner, k, largest, 3};
      ASSERT_TRUE(run({"top_k", parameters}, {x.data(), values.data(), indices.data()}, 3).ok());
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          const auto at = [&](int64_t place) { return x[(o * length + place) * inner + i]; };
          std::vector<int64_t> order(length);
          std::iota(order.begin(), order.end(), int64_t{0});
          const auto less = [&](float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
          std::ranges::stable_sort(
              order, [&](int64_t a, int64_t b) { return largest ? less(at(b), at(a)) : less(at(a), at(b)); });
          for (int64_t j = 0; j < k; ++j) {
            const int64_t out = (o * k + j) * inner + i;
            ASSERT_EQ(indices[out], order[j]) << "length " << length << " k " << k << " place " << j;
            ASSERT_TRUE(values[out] == at(order[j]) || std::isnan(at(order[j])));
          }
        }
      }
    }
  }
}

TEST(Routine, TopKWritesOnlyTheWantedOutputs) {
  std::vector<float> x = {3, 1, 2}, values(2);
  std::vector<int64_t> indices(2);
  ASSERT_TRUE(run({"top_k", {kF32, 1, 3, 1, 2, 1, 1}}, {x.data(), values.data()}, 1).ok());
  EXPECT_EQ(values, (std::vector<float>{3, 2}));
  ASSERT_TRUE(run({"top_k", {kF32, 1, 3, 1, 2, 0, 2}}, {x.data(), indices.data()}, 1).ok());
  EXPECT_EQ(indices, (std::vector<int64_t>{1, 2}));
}

// The definition: updates in their order.
template <class T>
void update(T& element, T value, int64_t reduction) {
  switch (reduction) {
    case 0:
      element = value;
      break;
    case 1:
      element = static_cast<T>(element + value);
      break;
    case 2:
      element = static_cast<T>(element * value);
      break;
    case 3:
      element = std::min(element, value);
      break;
    default:
      element = std::max(element, value);
  }
}

TEST(Routine, ScatterRowsAppliesUpdatesInTheirOrder) {
  Rng rng(13);
  struct Size {
    int64_t a, b, row, updates;
  };
  for (const auto& [a, b, row, updates] :
       {Size{7, 5, 3, 100}, {40, 50, 1, 60000}, {9, 1, 700, 90}, {3, 3, 4, 0}}) {
    for (int64_t reduction = 0; reduction < 5; ++reduction) {
      std::vector<int32_t> x(a * b * row), u(updates * row), y(x.size(), -1);
      std::vector<int64_t> indices(updates * 2);
      for (int32_t& value : x) value = static_cast<int32_t>(rng.uniform_int(-9, 9));
      for (int32_t& value : u) value = static_cast<int32_t>(rng.uniform_int(-9, 9));
      for (int64_t t = 0; t < updates; ++t) {
        indices[2 * t] = rng.uniform_int(-a, a - 1);
        indices[2 * t + 1] = rng.uniform_int(-b, b - 1);
      }
      ASSERT_TRUE(run({"scatter_rows", {kI32, 1, reduction, updates, row, a, b}},
                      {x.data(), indices.data(), u.data(), y.data()}, 3)
                      .ok());
      std::vector<int32_t> expected = x;
      for (int64_t t = 0; t < updates; ++t) {
        const int64_t p = (indices[2 * t] + a) % a, q = (indices[2 * t + 1] + b) % b;
        for (int64_t c = 0; c < row; ++c) {
          auto& element = reinterpret_cast<uint32_t&>(expected[(p * b + q) * row + c]);
          if (reduction == 1 || reduction == 2)  // wraps around
            update(element, static_cast<uint32_t>(u[t * row + c]), reduction);
          else
            update(expected[(p * b + q) * row + c], u[t * row + c], reduction);
        }
      }
      ASSERT_EQ(y, expected) << "row " << row << " reduction " << reduction;
    }
  }
}

TEST(Routine, ScatterElementsAppliesUpdatesInTheirOrder) {
  Rng rng(14);
  for (int64_t axis = 0; axis < 3; ++axis) {
    for (int64_t reduction = 0; reduction < 5; ++reduction) {
      const std::vector<int64_t> data = {11, 60, 30};
      std::vector<int64_t> shape = {9, 50, 30};
      shape[axis] = 70;
      std::vector<float> x(data[0] * data[1] * data[2]), u(shape[0] * shape[1] * shape[2]), y(x.size());
      std::vector<int32_t> indices(u.size());
      // Whole numbers, so that sums are exact in any order; powers of two for products.
      for (float& value : x) value = static_cast<float>(rng.uniform_int(-9, 9));
      for (float& value : u)
        value = reduction == 2 ? (rng.uniform_int(0, 1) != 0 ? 2.0F : 0.5F)
                               : static_cast<float>(rng.uniform_int(-9, 9));
      for (int32_t& index : indices)
        index = static_cast<int32_t>(rng.uniform_int(-data[axis], data[axis] - 1));
      std::vector<int64_t> parameters = {kF32, 0, reduction, axis, 3};
      parameters.insert(parameters.end(), data.begin(), data.end());
      parameters.insert(parameters.end(), shape.begin(), shape.end());
      ASSERT_TRUE(
          run({"scatter_elements", parameters}, {x.data(), indices.data(), u.data(), y.data()}, 3).ok());
      std::vector<float> expected = x;
      for (int64_t i = 0; i < shape[0]; ++i) {
        for (int64_t j = 0; j < shape[1]; ++j) {
          for (int64_t k = 0; k < shape[2]; ++k) {
            const int64_t from = (i * shape[1] + j) * shape[2] + k;
            std::vector<int64_t> at = {i, j, k};
            at[axis] = (indices[from] + data[axis]) % data[axis];
            update(expected[(at[0] * data[1] + at[1]) * data[2] + at[2]], u[from], reduction);
          }
        }
      }
      ASSERT_EQ(y, expected) << "axis " << axis << " reduction " << reduction;
    }
  }
}

TEST(Routine, ScatterOfShortFloatsIsRoundedOnce) {
  // 1 + 1024 times 1 in bf16 stays at 256 if each sum is rounded.
  std::vector<uint16_t> x = {0x3f80}, u(1024, 0x3f80), y(1);
  std::vector<int64_t> indices(1024, 0);
  const std::vector<void*> buffers = {x.data(), indices.data(), u.data(), y.data()};
  ASSERT_TRUE(run({"scatter_rows", {kBF16, 1, 1, 1024, 1, 1}}, buffers, 2).ok());
  EXPECT_EQ(y[0], 0x4480);  // 1025 is 1024 in bf16
  ASSERT_TRUE(run({"scatter_elements", {kBF16, 1, 1, 0, 1, 1, 1024}}, buffers, 2).ok());
  EXPECT_EQ(y[0], 0x4480);
}

TEST(Routine, LargestOfNanIsNan) {
  std::vector<float> x = {1, std::numeric_limits<float>::quiet_NaN(), 3}, y(3);
  std::vector<float> u = {std::numeric_limits<float>::quiet_NaN(), 5, 2};
  std::vector<int64_t> indices = {0, 1, 2};
  ASSERT_TRUE(
      run({"scatter_rows", {kF32, 1, 4, 3, 1, 3}}, {x.data(), indices.data(), u.data(), y.data()}, 1).ok());
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 3);
}

TEST(Routine, IndicesOutOfRangeAreAnError) {
  std::vector<float> x(4), u(1), y(4);
  for (const int64_t bad :
       {int64_t{4}, int64_t{-5}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    std::vector<int64_t> indices = {bad};
    const std::vector<void*> buffers = {x.data(), indices.data(), u.data(), y.data()};
    for (const RoutineCall& call : {RoutineCall{"scatter_rows", {kF32, 1, 0, 1, 1, 4}},
                                    RoutineCall{"scatter_elements", {kF32, 1, 0, 0, 1, 4, 1}}}) {
      const Status status = run(call, buffers, 2);
      ASSERT_FALSE(status.ok()) << call.name;
      EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
      EXPECT_NE(status.error().reason.find(std::to_string(bad) + ", but must be from -4 to 3"),
                std::string::npos)
          << status.error().reason;
    }
  }
}

TEST(Routine, DamagedParametersAreRefused) {
  const std::vector<RoutineCall> calls = {{"prefix_scan", {kF32, 2, 3, 4, 0, 0, 0}},
                                          {"top_k", {kF32, 2, 3, 4, 2, 1, 3}},
                                          {"scatter_rows", {kF32, 1, 0, 5, 6, 7, 8}},
                                          {"scatter_elements", {kF32, 1, 0, 1, 2, 7, 8, 3, 9}}};
  EXPECT_FALSE(demands_of({"no_such", {}}).ok());
  Rng rng(15);
  for (const RoutineCall& call : calls) {
    ASSERT_TRUE(demands_of(call).ok()) << call.name;
    RoutineCall longer = call;
    longer.parameters.push_back(int64_t{1} << 50);
    EXPECT_FALSE(demands_of(longer).ok()) << call.name;
    RoutineCall shorter = call;
    shorter.parameters.resize(2);
    EXPECT_FALSE(demands_of(shorter).ok()) << call.name;
    for (int i = 0; i < 2000; ++i) {
      RoutineCall damaged = call;
      for (int n = 0; n < 2; ++n)
        damaged.parameters[rng.uniform_int(0, std::ssize(call.parameters) - 1)] =
            rng.uniform_int(0, 3) == 0 ? static_cast<int64_t>(rng.next())
                                       : int64_t{1} << rng.uniform_int(0, 62);
      const auto demands = demands_of(damaged);
      if (!demands.ok()) continue;
      for (const int64_t bytes : demands->buffer_bytes) EXPECT_GE(bytes, 0) << call.name;
      EXPECT_GE(demands->shared_bytes, 0);
      EXPECT_GE(demands->thread_bytes, 0);
    }
  }
}

}  // namespace
}  // namespace tensorsmith::runtime::routine_test
