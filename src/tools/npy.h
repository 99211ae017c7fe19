// NumPy's .npy files (numpy.lib.format): magic, version, the length of a header, the header (a Python dict as text), the
// elements.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "lower/interpreter.h"

namespace tensorsmith::tools {

// The contents of a file of the formats 1.0 to 3.0. The result is row-major. path: the place of errors, kCorrupt for a
// damaged file, kUnsupported for arrays that no model takes (big-endian, complex, text).
Result<lower::Tensor> parse_npy(std::string_view bytes, const std::string& path);

// Replaces the file at once or not at all. NumPy has no bf16: such elements are written as f32, which holds them exactly.
Status write_npy(const std::string& path, const lower::Tensor& tensor);

// Whether a file that begins so is one of write_npy, whose headers are padded with more spaces than NumPy's.
// kMaxMarkedHeader bytes of a file are enough to tell.
inline constexpr size_t kMaxMarkedHeader = 1024;
bool has_npy_mark(std::string_view begin);

}  // namespace tensorsmith::tools
