// The table of element types.
#include "base/dtype.h"

#include <gtest/gtest.h>

#include <set>

namespace tensorsmith::dtype_test {
namespace {

TEST(DType, RowsAreInTheOrderOfTheTypes) {
  for (size_t i = 0; i < kDTypes.size(); ++i) EXPECT_EQ(static_cast<size_t>(kDTypes[i].dtype), i);
  EXPECT_TRUE(is_dtype(DType::kF64));
  EXPECT_FALSE(is_dtype(static_cast<DType>(kDTypes.size())));
}

TEST(DType, NamesAndNumbersDiffer) {
  std::set<std::string_view> texts, names, files;
  std::set<int64_t> numbers;
  for (const DTypeRow& row : kDTypes) {
    EXPECT_TRUE(texts.insert(row.text).second) << row.text;
    EXPECT_TRUE(names.insert(row.name).second) << row.text;
    EXPECT_TRUE(row.numpy.empty() || files.insert(row.numpy).second) << row.text;
    EXPECT_TRUE(numbers.insert(row.onnx).second) << row.text;
    EXPECT_EQ(parse_dtype(to_string(row.dtype)), row.dtype);
    EXPECT_EQ(find_dtype(&DTypeRow::onnx, row.onnx), row.dtype);
  }
  EXPECT_EQ(parse_dtype("f24"), std::nullopt);
}

// Code generators look up types of C and LLVM in these two columns only.
TEST(DType, StoredAndComputedTypesStandForThemselves) {
  for (const DTypeRow& row : kDTypes) {
    const DTypeRow &stored = row_of(row.stored), &computed = row_of(row.computed);
    EXPECT_EQ(stored.stored, stored.dtype) << row.text;
    EXPECT_EQ(computed.computed, computed.dtype) << row.text;
    EXPECT_FALSE(stored.c.empty()) << row.text;
    EXPECT_FALSE(computed.c.empty()) << row.text;
    EXPECT_EQ(computed.kind, row.kind) << row.text;
    EXPECT_GE(stored.bits, row.bits) << row.text;
  }
}

TEST(DType, Sizes) {
  EXPECT_EQ(bits_of(DType::kBool), 1);
  EXPECT_EQ(bytes_of(DType::kBool), 1);
  EXPECT_EQ(bytes_of(DType::kBF16), 2);
  EXPECT_EQ(bytes_of(DType::kF64, 3), 24);
  EXPECT_EQ(bytes_of(DType::kBool, 11), 11);
  EXPECT_EQ(bytes_of(DType::kU8, INT64_MAX), INT64_MAX);
}

TEST(DType, Kinds) {
  EXPECT_TRUE(is_float(DType::kF16) && is_short_float(DType::kF16) && is_short_float(DType::kBF16));
  EXPECT_FALSE(is_short_float(DType::kF32) || is_short_float(DType::kU16) || is_short_float(DType::kBool));
  EXPECT_TRUE(is_signed_int(DType::kI8) && is_unsigned_int(DType::kU64));
  EXPECT_FALSE(is_int(DType::kBool) || is_int(DType::kF32));
}

}  // namespace
}  // namespace tensorsmith::dtype_test
