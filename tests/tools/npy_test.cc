// Arrays are written and read back; tests/python/test_run_output.py has NumPy read them.
#include "tools/npy.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/input_file.h"
#include "cli_support.h"

namespace tensorsmith::tools::npy_test {
namespace {

using ir::DType;

TEST(Npy, WhatIsWrittenIsRead) {
  const testing::TemporaryDirectory folder;
  for (const DType dtype :
       {DType::kBool, DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32, DType::kI64,
        DType::kU64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{}, {5}, {2, 3}, {0, 4}, std::vector<int64_t>(30, 1)}) {
      Rng rng(7);
      const lower::Tensor tensor = lower::random_tensor(dtype, shape, rng);
      const std::string path = folder.file("a.npy");
      ASSERT_TRUE(write_npy(path, tensor).ok());
      const std::string bytes = read_input(path, 1 << 20).value();
      EXPECT_TRUE(has_npy_mark(bytes.substr(0, kMaxMarkedHeader)));
      EXPECT_EQ((bytes.find('\n') + 1) % 64, 0U) << "where the elements begin";
      const auto read = parse_npy(bytes, path);
      ASSERT_TRUE(read.ok()) << read.error().message();
      EXPECT_EQ(read->dtype, dtype == DType::kBF16 ? DType::kF32 : dtype);
      EXPECT_EQ(read->shape, shape);
      ASSERT_EQ(read->num_elements(), tensor.num_elements());
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        EXPECT_EQ(read->at(i).i, tensor.at(i).i);
        EXPECT_EQ(read->at(i).f, tensor.at(i).f);
      }
    }
  }
}

TEST(Npy, FilesOfNumpyAreNotOurs) {
  for (const std::string name :
       {"rows.npy", "version2.npy", "version3.npy", "scalar.npy", "empty.npy", "bools.npy"})
    EXPECT_FALSE(has_npy_mark(
        read_input(std::string(TENSORSMITH_SOURCE_DIR) + "/tests/data/numpy/" + name, 1 << 20).value()))
        << name;
  EXPECT_FALSE(has_npy_mark(""));
  EXPECT_FALSE(has_npy_mark("\x93NUMPY\n"));
  EXPECT_FALSE(has_npy_mark(std::string(500, ' ') + "\n"));
}

}  // namespace
}  // namespace tensorsmith::tools::npy_test
