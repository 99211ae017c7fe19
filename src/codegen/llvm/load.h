// Loads objects into this process and links them to shared libraries. Internal to this directory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/backend.h"

namespace tensorsmith::codegen {

// Errors: kCorrupt if this is no object or it has undefined symbols; kNotFound if it lacks the
// symbol.
Result<std::unique_ptr<LoadedKernel>> load_object(const std::vector<char>& object, const std::string& symbol);

// Links one shared library that depends on no other library and exports the kernels' symbols.
// Returns the content of the library's file; nothing is written to disk.
Result<std::vector<char>> link_shared_library(const std::vector<std::vector<char>>& objects);

}  // namespace tensorsmith::codegen
