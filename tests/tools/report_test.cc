#include "tools/report.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/model/output_check.h"
#include "tools/options.h"

namespace tensorsmith::tools::report_test {
namespace {

TEST(Report, AlignsColumns) {
  Table table({"task", "time"});
  table.add({"conv", "1.5 ms"});
  table.add({"softmax", "12 us"});
  EXPECT_EQ(table.text(),
            "task       time\n"
            "conv     1.5 ms\n"
            "softmax   12 us\n");
}

TEST(Report, FormatsQuantities) {
  EXPECT_EQ(format_seconds(0.0012345), "1.234 ms");
  EXPECT_EQ(format_seconds(3.2e-5), "32.0 us");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(format_flops(2.5e9), "2.50 GFLOP");
  EXPECT_EQ(format_duration(59.4), "59 s");
  EXPECT_EQ(format_duration(3723), "1:02:03");
}

TEST(Options, ParsesShapes) {
  const auto good = parse_shape_option("x.y=1x3x48x320");
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->first, "x.y");
  EXPECT_EQ(good->second, (std::vector<int64_t>{1, 3, 48, 320}));
  for (const char* bad :
       {"x", "=1x2", "x=1x", "x=1xx2", "x=", "x=scalarx2", "x=-1", "x=1x2y", "x=99999999999999999999"}) {
    const auto result = parse_shape_option(bad);
    ASSERT_FALSE(result.ok()) << bad;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().message().find("NAME=1x3x48x320"), std::string::npos);
  }
}

lower::Tensor floats(std::vector<float> values) {
  lower::Tensor t = lower::Tensor::zeros(ir::DType::kF32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    t.set(static_cast<int64_t>(i), ir::scalar_float(ir::DType::kF32, values[i]));
  return t;
}

TEST(OutputCheck, FollowsTheTolerance) {
  const engine::Tolerance tolerance{1e-3, 1e-4};
  EXPECT_TRUE(engine::compare(floats({1.0005f, 0.00005f}), floats({1, 0}), tolerance).ok);
  const engine::Comparison bad = engine::compare(floats({1, 1.1f, 5}), floats({1, 1, 4}), tolerance);
  EXPECT_FALSE(bad.ok);
  EXPECT_EQ(bad.wrong, 2);
  EXPECT_NE(bad.detail.find("element 2"), std::string::npos);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(engine::compare(floats({nan, inf}), floats({nan, inf}), tolerance).ok);
  EXPECT_FALSE(engine::compare(floats({nan}), floats({1}), tolerance).ok);
  EXPECT_FALSE(engine::compare(floats({inf}), floats({-inf}), tolerance).ok);
  EXPECT_FALSE(engine::compare(floats({1, 2}), floats({1}), tolerance).ok);
}

}  // namespace
}  // namespace tensorsmith::tools::report_test
