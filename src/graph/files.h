// Whole files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tensorsmith::graph {

// Written beside and renamed, so that no half-written file remains. kIo.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace tensorsmith::graph
