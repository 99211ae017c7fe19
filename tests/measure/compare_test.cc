#include "measure/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "doubles.h"
#include "measure/guarded_memory.h"
#include "measure/task_data.h"

namespace tensorsmith::measure::compare_test {
namespace {

using ir::DType;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::optional<Mismatch> compare_f32(const std::vector<float>& got, const std::vector<float>& expected,
                                    const Tolerance& tolerance) {
  return compare(DType::kF32, static_cast<int64_t>(got.size()), got.data(), expected.data(), tolerance);
}

TEST(Compare, FloatsWithinTolerance) {
  const Tolerance tolerance{1e-3, 1e-2, 0};
  EXPECT_FALSE(compare_f32({1.0F, 100.0F, 0.0F}, {1.01F, 100.1F, 0.009F}, tolerance));
  const auto wrong = compare_f32({1.0F, 100.0F, 0.5F, 7}, {1.02F, 100.0F, 0.0F, 7}, tolerance);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->index, 2);  // the worst difference, not the first
  EXPECT_EQ(wrong->count, 2);
  EXPECT_EQ(describe(*wrong, 4), "element 2 is 0.5, expected 0 (2 of 4 elements differ)");
}

TEST(Compare, NanAndInfinityMustBeTheSame) {
  const Tolerance tolerance{1e-3, 1e-3, 0};
  EXPECT_FALSE(compare_f32({kNan, kInf, -kInf}, {kNan, kInf, -kInf}, tolerance));
  EXPECT_TRUE(compare_f32({kNan}, {1}, tolerance));
  EXPECT_TRUE(compare_f32({1}, {kNan}, tolerance));
  EXPECT_TRUE(compare_f32({kInf}, {-kInf}, tolerance));
  EXPECT_TRUE(compare_f32({1e30F}, {kInf}, tolerance));
  EXPECT_TRUE(compare_f32({kInf}, {1e30F}, tolerance));
}

TEST(Compare, IntegersAreExactButForAllowedFlips) {
  const std::vector<int32_t> expected(1000, 5);
  std::vector<int32_t> got = expected;
  const auto check = [&](int64_t allowed) {
    return compare(DType::kI32, 1000, got.data(), expected.data(), {0, 0, allowed});
  };
  EXPECT_FALSE(check(0));
  got[3] = 6;
  EXPECT_TRUE(check(0));
  EXPECT_FALSE(check(1));
  got[4] = 4;
  EXPECT_TRUE(check(1));
  const unsigned char truth = 1, odd = 3;
  EXPECT_TRUE(compare(DType::kBool, 1, &odd, &truth, {}));
}

// Whatever the expected value, an element that still holds the bytes of poison() is reported as
// wrong.
TEST(Compare, PoisonIsNeverRight) {
  const uint64_t seed = 5;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  std::vector<float> expected = {0.0F, -0.0F, 1.0F, -1.0F, kNan, kInf, -kInf, 1e-40F, 3e38F};
  for (int i = 0; i < 2000; ++i) expected.push_back(static_cast<float>(rng.normal()));
  std::vector<float> got(expected.size());
  poison(expected.data(), static_cast<int64_t>(expected.size() * 4), got.data());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(compare_f32({got[i]}, {expected[i]}, {1e-3, 1e-3, 0})) << expected[i];
  for (int value = 0; value < 256; ++value) {
    const auto byte = static_cast<unsigned char>(value);
    unsigned char poisoned = 0;
    poison(&byte, 1, &poisoned);
    EXPECT_TRUE(compare(DType::kU8, 1, &poisoned, &byte, {}));
    if (value < 2) {
      EXPECT_TRUE(compare(DType::kBool, 1, &poisoned, &byte, {}));
    }
  }
}

// Another order of summation passes, a sum with a missing term does not.
TEST(Compare, ToleranceSeparatesRoundingFromMistakes) {
  const uint64_t seed = 6;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const ir::Workload workload = matmul16();
  for (const size_t terms : {16, 576, 20000}) {
    std::vector<float> expected(256), backwards(256), missing(256);
    for (size_t e = 0; e < 256; ++e) {
      std::vector<float> products;
      for (size_t k = 0; k < terms; ++k)
        products.push_back(static_cast<float>((rng.uniform() * 2 - 1) * (rng.uniform() * 2 - 1)));
      for (size_t k = 0; k < terms; ++k) expected[e] += products[k];
      for (size_t k = terms; k-- > 0;) backwards[e] += products[k];
      for (size_t k = 1; k < terms; ++k) missing[e] += products[k];
    }
    const Tolerance tolerance = tolerance_for(workload, 0, expected.data());
    EXPECT_FALSE(compare_f32(backwards, expected, tolerance)) << terms;
    const auto wrong = compare_f32(missing, expected, tolerance);
    ASSERT_TRUE(wrong) << terms;
    EXPECT_GT(wrong->count, 100) << terms;
  }
}

TEST(GuardedBuffer, NoticesWritesAround) {
  for (const int64_t bytes : {0, 1, 63, 64, 65, 4000, 4096, 10000}) {
    auto buffer = GuardedBuffer::allocate(bytes);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    buffer->reset(0x11);
    EXPECT_TRUE(buffer->canaries_intact());
    if (bytes > 0) buffer->data()[bytes - 1] = std::byte{1};
    EXPECT_TRUE(buffer->canaries_intact());
    buffer->data()[-1] = std::byte{0};
    EXPECT_FALSE(buffer->canaries_intact());
    buffer->reset(0);
    EXPECT_TRUE(buffer->canaries_intact());
    const bool room_after = bytes % 64 != 0;
    if (room_after) {
      buffer->data()[bytes] = std::byte{0};
      EXPECT_FALSE(buffer->canaries_intact());
    }
    EXPECT_DEATH(buffer->data()[bytes + 64] = std::byte{0}, "");
    ASSERT_TRUE(buffer->make_read_only().ok());
    if (bytes > 0) {
      EXPECT_DEATH(buffer->data()[0] = std::byte{0}, "");
    }
  }
  EXPECT_FALSE(GuardedBuffer::allocate(-1).ok());
  EXPECT_FALSE(GuardedBuffer::allocate(int64_t{1} << 60).ok());
}

// Y[i, j] = X[index[i], j], where the index passes through another operation.
TEST(TaskData, IndicesStayInRange) {
  const auto x = ir::placeholder("X", DType::kF32, {7, 3});
  const auto index = ir::placeholder("index", DType::kI64, {500});
  const auto free = ir::placeholder("free", DType::kI64, {500});
  const ir::Axis n{ir::Var("n"), 500};
  const auto copy = ir::compute("copy", {n}, {}, ir::Combiner::kNone, {ir::load(index->output(), {n.var})});
  const ir::Axis i{ir::Var("i"), 500}, j{ir::Var("j"), 3};
  const auto y = ir::compute("Y", {i, j}, {}, ir::Combiner::kNone,
                             {ir::load(x->output(), {ir::load(copy->output(), {i.var}), j.var})});
  const ir::Axis m{ir::Var("m"), 500};
  const auto z = ir::compute("Z", {m}, {}, ir::Combiner::kNone, {ir::load(free->output(), {m.var})});
  ir::Workload workload;
  workload.operations = {x, index, free, copy, y, z};
  workload.outputs = {y->output(), z->output()};
  ASSERT_TRUE(ir::verify(workload).ok());
  EXPECT_EQ(index_limits(workload), (std::vector<int64_t>{0, 7, 0}));
  const auto inputs = random_inputs(workload, 3);
  bool last = false;
  for (int64_t k = 0; k < 500; ++k) {
    ASSERT_GE(inputs[1].at(k).i, 0);
    ASSERT_LT(inputs[1].at(k).i, 7);
    last |= inputs[1].at(k).i == 6;
  }
  EXPECT_TRUE(last);
  EXPECT_TRUE(lower::evaluate(workload, inputs).ok());
  const auto again = random_inputs(workload, 3);
  EXPECT_EQ(again[0].data, inputs[0].data);
  EXPECT_NE(random_inputs(workload, 4)[0].data, inputs[0].data);
}

TEST(TaskData, SampledPointsFindAWrongReference) {
  const ir::Workload workload = matmul16();
  const auto inputs = random_inputs(workload, 1);
  auto data = TaskData::create(workload, inputs, 1 << 20, 1);
  ASSERT_TRUE(data.ok());
  const auto outputs = lower::evaluate(workload, inputs);
  ASSERT_TRUE(outputs.ok());
  std::memcpy((*data)->output(0), (*outputs)[0].data.data(), (*outputs)[0].data.size());
  (*data)->set_tolerances(workload);
  EXPECT_TRUE(verify_points(workload, inputs, **data, 1e6, 1).ok());
  auto* values = reinterpret_cast<float*>((*data)->output(0));
  values[255] += 1;  // the last element is always checked
  const auto status = verify_points(workload, inputs, **data, 1e6, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kMismatch);
  EXPECT_NE(status.error().message().find("output 0: element 255 is"), std::string::npos);
}

}  // namespace
}  // namespace tensorsmith::measure::compare_test
