// A file of named tensors and strings in the safetensors format
// (https://github.com/huggingface/safetensors), which common machine-learning tools can read.
// Stores models and corpora of programs.
//
// The file begins with the length of the header in 8 bytes, little endian. The header is a JSON
// object, padded with spaces to a multiple of 8 bytes. It maps each tensor's name to {"dtype",
// "shape", "data_offsets"}, and "__metadata__" to an object of strings that includes "hash" (a hash
// of the other metadata, the tensors' entries and the data). The data is little endian, row-major
// and without gaps, the tensors with the widest elements first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::learn {

enum class TensorType : uint8_t { kF64, kF32, kI32, kU16, kU8 };
std::string_view to_string(TensorType type);  // "F64", "F32", "I32", "U16", "U8"
int64_t bytes_of(TensorType type);

// The type for the C++ element types double, float, int32_t, uint16_t and uint8_t.
template <class T>
constexpr TensorType tensor_type();

struct ModelTensor {
  std::string name;  // not empty, not "__metadata__"; unique in a file
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;   // row-major; empty: a scalar
  std::vector<std::byte> data;  // as many elements as the product of the shape
};

struct TensorFile {
  std::map<std::string, std::string> metadata;  // without the hash
  std::vector<ModelTensor> tensors;

  template <class T>
  void add(std::string name, std::vector<int64_t> shape, std::span<const T> values);
  const ModelTensor* find(std::string_view name) const;  // nullptr if there is none
  // Returns the elements of a tensor with this element type and shape; -1 in a shape matches any
  // length. kCorrupt if there is no such tensor.
  template <class T>
  Result<std::vector<T>> values(std::string_view name, std::span<const int64_t> shape) const;
  template <class T>
  Result<std::vector<T>> values(std::string_view name, std::initializer_list<int64_t> shape) const {
    return values<T>(name, std::span<const int64_t>(shape.begin(), shape.size()));
  }
};

std::string to_bytes(const TensorFile& file);
using Metadata = std::map<std::string, std::string>;
// Checks the metadata before the hash is verified, so that a file of another kind or version is
// reported as such.
using MetadataCheck = std::function<Status(const Metadata&)>;
// kCorrupt if the bytes are damaged or not such a file; errors of `check`. Safe on arbitrary bytes.
Result<TensorFile> parse_tensor_file(std::string_view bytes, const MetadataCheck& check = nullptr);

// Replaces the file atomically.
Status write_tensor_file(const TensorFile& file, const std::string& path);
// Errors name the path as their place. kNotFound or kIo if the file cannot be read.
Result<TensorFile> read_tensor_file(const std::string& path, const MetadataCheck& check = nullptr);

// --- definitions of templates

template <>
constexpr TensorType tensor_type<double>() {
  return TensorType::kF64;
}
template <>
constexpr TensorType tensor_type<float>() {
  return TensorType::kF32;
}
template <>
constexpr TensorType tensor_type<int32_t>() {
  return TensorType::kI32;
}
template <>
constexpr TensorType tensor_type<uint16_t>() {
  return TensorType::kU16;
}
template <>
constexpr TensorType tensor_type<uint8_t>() {
  return TensorType::kU8;
}

// Implementation of add() and values() on bytes.
void add_tensor(TensorFile& file, std::string name, TensorType type, std::vector<int64_t> shape,
                std::span<const std::byte> data);
Result<const ModelTensor*> find_tensor(const TensorFile& file, std::string_view name, TensorType type,
                                       std::span<const int64_t> shape);

template <class T>
void TensorFile::add(std::string name, std::vector<int64_t> shape, std::span<const T> values) {
  add_tensor(*this, std::move(name), tensor_type<T>(), std::move(shape), std::as_bytes(values));
}

template <class T>
Result<std::vector<T>> TensorFile::values(std::string_view name, std::span<const int64_t> shape) const {
  TS_ASSIGN_OR_RETURN(const ModelTensor* tensor, find_tensor(*this, name, tensor_type<T>(), shape));
  std::vector<T> out(tensor->data.size() / sizeof(T));
  std::copy(tensor->data.begin(), tensor->data.end(), std::as_writable_bytes(std::span(out)).begin());
  return out;
}

}  // namespace tensorsmith::learn
