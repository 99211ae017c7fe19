// What differs between C99 and its relatives (CUDA C, OpenCL C): names of types, qualifiers, and how a parallel loop is
// started. Everything else that a kernel uses is an operator of C or a ts_ function of the dialect's header.
#pragma once

#include <string>
#include <string_view>

#include "ir/expr.h"

namespace tensorsmith::codegen {

struct Dialect {
  std::string_view header;            // that kernels include
  std::string_view prologue;          // of a kernel's file, before the header
  std::string_view restrict_pointer;  // qualifier of a pointer that nothing else points to
  std::string_view function;          // qualifiers of functions that only the kernel calls
  std::string_view aligned;           // attribute of local arrays, for vectors
  std::string_view vectors;           // macro that says whether the compiler has vector types; empty: never
  // Names of a dtype: as a value (f16 and bf16 are held as float) and as an element in memory.
  std::string_view (*value_type)(ir::DType);
  std::string_view (*memory_type)(ir::DType);
  // A class for values of f16 (C++), whose operations are an instruction each: ts_add_f16 and the like. Empty: float.
  std::string_view f16_class = "";

  std::string_view type_of(ir::DType dtype) const {
    return dtype == ir::DType::kF16 && !f16_class.empty() ? f16_class : value_type(dtype);
  }
};

const Dialect& c99();

// "i8" ... "u64", "f32", "f64": the suffix of ts_ functions on values of the dtype.
std::string_view value_suffix(ir::DType dtype);

}  // namespace tensorsmith::codegen
