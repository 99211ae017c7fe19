// NumPy's .npy files (numpy.lib.format): magic, version, header length, header (a Python dict as
// text), elements.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "lower/interpreter.h"

namespace tensorsmith::tools {

// Parses a file of format 1.0 to 3.0. The result is row-major. `path` is the place of errors:
// kCorrupt for a damaged file, kUnsupported for arrays that no model takes (big-endian, complex,
// text).
Result<lower::Tensor> parse_npy(std::string_view bytes, const std::string& path);

// Replaces the file atomically. NumPy has no bf16, so bf16 elements are written as f32, which
// represents them exactly.
Status write_npy(const std::string& path, const lower::Tensor& tensor);

// Whether a file with this beginning was written by write_npy(), whose headers have more padding
// than NumPy's. The first kMaxMarkedHeader bytes of a file are sufficient.
inline constexpr size_t kMaxMarkedHeader = 1024;
bool has_npy_mark(std::string_view begin);

}  // namespace tensorsmith::tools
