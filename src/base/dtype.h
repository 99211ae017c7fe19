// Element types of tensors and scalars, one row each. All names and sizes of types are in this table;
// conversions of values are in ir/scalar.cc, lower/machine.cc and codegen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tensorsmith {

// The values are those of ts_dtype in runtime/tensorsmith.h.
enum class DType : uint8_t { kBool, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF16, kBF16, kF32, kF64 };

enum class DTypeKind : uint8_t { kBool, kSigned, kUnsigned, kFloat };

struct DTypeRow {
  DType dtype;
  DTypeKind kind;
  int bits;                // bits of a value
  DType stored;            // type of C and LLVM with the same bits in memory
  DType computed;          // type of arithmetic, whose results are rounded
  std::string_view text;   // name in programs, manifests and messages
  std::string_view name;   // name in NumPy and TVM
  std::string_view c;      // name in C and its relatives; empty: a value has the C type of `computed`
  std::string_view mma;    // operand type of PTX's matrix instructions; empty: they do not take it
  std::string_view numpy;  // name in .npy files, without byte order; empty: NumPy lacks the type
  std::string_view onnx_name;
  int64_t onnx;  // TensorProto.DataType
};

inline constexpr std::array<DTypeRow, 13> kDTypes = [] {
  using enum DType;
  constexpr DTypeKind kSigned = DTypeKind::kSigned, kUnsigned = DTypeKind::kUnsigned,
                      kFloat = DTypeKind::kFloat;
  return std::array<DTypeRow, 13>{{
      {kBool, DTypeKind::kBool, 1, kU8, kBool, "bool", "bool", "bool", "", "b1", "bool", 9},
      {kI8, kSigned, 8, kI8, kI8, "i8", "int8", "int8_t", "s8", "i1", "int8", 3},
      {kU8, kUnsigned, 8, kU8, kU8, "u8", "uint8", "uint8_t", "u8", "u1", "uint8", 2},
      {kI16, kSigned, 16, kI16, kI16, "i16", "int16", "int16_t", "", "i2", "int16", 5},
      {kU16, kUnsigned, 16, kU16, kU16, "u16", "uint16", "uint16_t", "", "u2", "uint16", 4},
      {kI32, kSigned, 32, kI32, kI32, "i32", "int32", "int32_t", "", "i4", "int32", 6},
      {kU32, kUnsigned, 32, kU32, kU32, "u32", "uint32", "uint32_t", "", "u4", "uint32", 12},
      {kI64, kSigned, 64, kI64, kI64, "i64", "int64", "int64_t", "", "i8", "int64", 7},
      {kU64, kUnsigned, 64, kU64, kU64, "u64", "uint64", "uint64_t", "", "u8", "uint64", 13},
      {kF16, kFloat, 16, kU16, kF32, "f16", "float16", "", "f16", "f2", "float16", 10},
      {kBF16, kFloat, 16, kU16, kF32, "bf16", "bfloat16", "", "bf16", "", "bfloat16", 16},
      {kF32, kFloat, 32, kF32, kF32, "f32", "float32", "float", "tf32", "f4", "float", 1},
      {kF64, kFloat, 64, kF64, kF64, "f64", "float64", "double", "", "f8", "double", 11},
  }};
}();

constexpr const DTypeRow& row_of(DType t) { return kDTypes[static_cast<size_t>(t)]; }
// Tells whether t, which may come from a file or a message, is the value of a type.
constexpr bool is_dtype(DType t) { return static_cast<size_t>(t) < kDTypes.size(); }
constexpr std::string_view to_string(DType t) { return row_of(t).text; }
constexpr int bits_of(DType t) { return row_of(t).bits; }
// Bits of a stored element; bool takes one byte (0 or 1).
constexpr int stored_bits_of(DType t) { return bits_of(row_of(t).stored); }
// Bytes of one element that is stored alone.
constexpr int bytes_of(DType t) { return (stored_bits_of(t) + 7) / 8; }
// Bytes of elements that are stored one after the other.
constexpr int64_t bytes_of(DType t, int64_t elements) {
  const int64_t bits = stored_bits_of(t);
  return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
}

constexpr bool is_float(DType t) { return row_of(t).kind == DTypeKind::kFloat; }
constexpr bool is_signed_int(DType t) { return row_of(t).kind == DTypeKind::kSigned; }
constexpr bool is_unsigned_int(DType t) { return row_of(t).kind == DTypeKind::kUnsigned; }
constexpr bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }
// Floats of less than single precision, which are computed as f32.
constexpr bool is_short_float(DType t) { return is_float(t) && row_of(t).computed != t; }

// Returns the type whose row has this value in the column.
template <typename T>
constexpr std::optional<DType> find_dtype(T DTypeRow::* column, const T& value) {
  for (const DTypeRow& row : kDTypes) {
    if (row.*column == value) return row.dtype;
  }
  return std::nullopt;
}
constexpr std::optional<DType> parse_dtype(std::string_view text) {
  return find_dtype(&DTypeRow::text, text);
}

}  // namespace tensorsmith
