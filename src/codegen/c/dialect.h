// The differences between C99 and its relatives (CUDA C, OpenCL C): names of types, qualifiers, and
// how a parallel loop is started. Everything else in a kernel is an operator of C or a ts_ function
// of the dialect's header.
#pragma once

#include <string>
#include <string_view>

#include "ir/expr.h"

namespace tensorsmith::codegen {

struct Dialect {
  std::string_view header;            // header that kernels include
  std::string_view prologue;          // text at the beginning of a kernel's file, before the header
  std::string_view restrict_pointer;  // qualifier of a pointer that nothing else points to
  std::string_view function;          // qualifiers of helper functions that only the kernel calls
  std::string_view aligned;           // alignment attribute of local arrays that vectors access
  std::string_view vectors;           // macro that tells whether the compiler has vector types; empty: it
                                      // never has
  // Class for values of f16 (C++), whose operations take one instruction each (ts_add_f16 and the
  // like). Empty: float is used.
  std::string_view f16_class = "";

  // Returns the type of a value.
  std::string_view type_of(ir::DType dtype) const {
    return dtype == ir::DType::kF16 && !f16_class.empty() ? f16_class : row_of(row_of(dtype).computed).c;
  }
};

const Dialect& c99();

// Returns the suffix of the ts_ functions on values of the dtype: "i8" ... "u64", "f32", "f64".
inline std::string_view value_suffix(ir::DType dtype) { return ir::to_string(row_of(dtype).computed); }
// Returns the type of an element in memory.
inline std::string_view memory_type(ir::DType dtype) { return row_of(row_of(dtype).stored).c; }

}  // namespace tensorsmith::codegen
