// Inputs of `run` from NumPy files, made by NumPy 2 (tests/data/numpy), and from raw bytes.
#include "tools/tensor_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/input_file.h"
#include "tools/npy.h"

namespace tensorsmith::tools::tensor_input_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string data(const std::string& name) {
  return std::string(TENSORSMITH_SOURCE_DIR) + "/tests/data/numpy/" + name;
}

runtime::TensorInfo info(const std::string& name, std::vector<int64_t> shape, DType dtype = DType::kF32) {
  runtime::TensorInfo out;
  out.name = name;
  out.dtype = dtype;
  out.shape = std::move(shape);
  return out;
}

template <class T>
std::vector<T> values(const lower::Tensor& tensor) {
  std::vector<T> out(tensor.data.size() / sizeof(T));
  std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
  return out;
}

TEST(TensorInput, ReadsArraysOfNumpy) {
  for (const std::string name :
       {"rows.npy", "columns.npy", "version2.npy", "version3.npy", "two.npz", "packed.npz"}) {
    const auto tensor = read_tensor(data(name), info("x", {2, 3}));
    ASSERT_TRUE(tensor.ok()) << tensor.error().message();
    EXPECT_EQ(tensor->dtype, ir::DType::kF32) << name;
    EXPECT_THAT(tensor->shape, ElementsAre(2, 3)) << name;
    EXPECT_THAT(values<float>(*tensor), ElementsAre(-1, -0.5, 0, 0.5, 1, 1.5)) << name;
  }
  for (const auto& [name, input] : {std::pair{"columns3.npy", "x"}, std::pair{"two.npz", "y"}}) {
    const auto tensor = read_tensor(data(name), info(input, {2, 3, 4}, DType::kI64));
    ASSERT_TRUE(tensor.ok()) << tensor.error().message();
    EXPECT_THAT(tensor->shape, ElementsAre(2, 3, 4));
    for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(tensor->at(i).i, i - 5);
  }
  const auto scalar = read_tensor(data("scalar.npy"), info("x", {}, DType::kF64));
  ASSERT_TRUE(scalar.ok());
  EXPECT_TRUE(scalar->shape.empty());
  EXPECT_EQ(scalar->at(0).f, 2.5);
  const auto empty = read_tensor(data("empty.npy"), info("x", {0, 3}, DType::kU8));
  ASSERT_TRUE(empty.ok());
  EXPECT_THAT(empty->shape, ElementsAre(0, 3));
  const auto bools = read_tensor(data("bools.npy"), info("x", {3}, DType::kBool));
  ASSERT_TRUE(bools.ok());
  EXPECT_THAT(values<uint8_t>(*bools), ElementsAre(1, 0, 1));
  const auto half = read_tensor(data("half.npy"), info("x", {2}, DType::kF16));
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->at(1).f, -2);
}

TEST(TensorInput, RefusesWhatNoModelTakes) {
  const auto refused = [](const std::string& name, const std::string& why) {
    const auto tensor = read_tensor(data(name), info("x", {2, 3}));
    ASSERT_FALSE(tensor.ok()) << name;
    EXPECT_THAT(tensor.error().message(), HasSubstr(why));
    EXPECT_THAT(tensor.error().message(), HasSubstr(name));
  };
  refused("big_endian.npy", "'>f4'");
  refused("complex.npy", "'<c8'");
  refused("bomb.npz", "1048704 bytes, but the input needs 24");
  const auto none = read_tensor(data("two.npz"), info("z", {2, 3}));
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message(), HasSubstr("has no array 'z'; it has x, y"));
}

// Changes each byte in three ways and tries every shorter file: an error or an array of the stated
// size.
TEST(TensorInput, DamagedFilesAreErrors) {
  const auto path =
      std::filesystem::temp_directory_path() / ("tensor_input_" + std::to_string(getpid()) + ".npz");
  for (const std::string name : {"columns3.npy", "two.npz", "packed.npz"}) {
    const std::string whole = read_input(data(name), 1 << 20).value();
    const auto read = [&](const std::string& bytes) {
      const auto check = [](const Result<lower::Tensor>& tensor) {
        if (!tensor.ok()) return;
        EXPECT_EQ(
            static_cast<size_t>(tensor->num_elements()) * static_cast<size_t>(ir::bytes_of(tensor->dtype)),
            tensor->data.size());
      };
      if (name.find(".npz") == std::string::npos) return check(parse_npy(bytes, name));
      std::ofstream(path, std::ios::binary) << bytes;
      check(read_tensor(path.string(), info("x", {2, 3})));
    };
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const int change : {0x01, 0x80, 0xFF}) {
        std::string bytes = whole;
        bytes[i] = static_cast<char>(bytes[i] ^ change);
        read(bytes);
      }
      read(whole.substr(0, i));
    }
    EXPECT_FALSE(parse_npy(whole.substr(0, whole.size() - 1), name).ok());
  }
  std::filesystem::remove(path);
}

TEST(TensorInput, TakesRawElements) {
  const auto path =
      std::filesystem::temp_directory_path() / ("tensor_input_" + std::to_string(getpid()) + ".raw");
  const float elements[] = {1, 2, 3, 4, 5, 6};
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(elements), sizeof elements);
  const auto tensor = read_tensor(path.string(), info("x", {3, 2}));
  ASSERT_TRUE(tensor.ok()) << tensor.error().message();
  EXPECT_THAT(tensor->shape, ElementsAre(3, 2));
  EXPECT_THAT(values<float>(*tensor), ElementsAre(1, 2, 3, 4, 5, 6));
  const auto other = read_tensor(path.string(), info("x", {3, 3}));
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message(), HasSubstr("has 24 bytes, but the input needs 36"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tensorsmith::tools::tensor_input_test
