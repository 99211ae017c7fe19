// Writes whole files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tensorsmith::graph {

// Writes to a temporary file in the same directory, flushes and renames it, so that no half-written
// file remains. Error: kIo.
Status write_file(const std::string& path, std::string_view bytes);

// Documentation string at the end of the tensor files that are written here. A file with it may be
// overwritten.
inline constexpr const char* kTensorMark = "written by Tensorsmith";

}  // namespace tensorsmith::graph
