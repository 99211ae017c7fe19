// Whole files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tensorsmith::graph {

// Written beside, flushed and renamed, so that no half-written file remains. kIo.
Status write_file(const std::string& path, std::string_view bytes);

// The documentation string of tensors that are written here, at the end of their files: what is known by it
// may be replaced by another one.
inline constexpr const char* kTensorMark = "written by Tensorsmith";

}  // namespace tensorsmith::graph
