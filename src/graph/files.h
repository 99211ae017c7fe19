// Whole files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tensorsmith::graph {

// kNotFound, kIo, kInvalidArgument for a folder, or kResourceExhausted if it is longer than max_bytes.
Result<std::string> read_file(const std::string& path, int64_t max_bytes);
// Written beside, flushed and renamed, so that no half-written file remains. kIo.
Status write_file(const std::string& path, std::string_view bytes);

// The documentation string of tensors that are written here, at the end of their files: what is known by it
// may be replaced by another one.
inline constexpr const char* kTensorMark = "written by Tensorsmith";

}  // namespace tensorsmith::graph
