// Objects into this process and into shared libraries. Internal to the room.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/backend.h"

namespace tensorsmith::codegen {

// kCorrupt: no object, or one with undefined symbols; kNotFound: it has no such symbol.
Result<std::unique_ptr<LoadedKernel>> load_object(const std::vector<char>& object, const std::string& symbol);

// One shared library that needs no other library; symbols are those of the kernels. The result is the library's file
// content: nothing is written to a disk.
Result<std::vector<char>> link_shared_library(const std::vector<std::vector<char>>& objects);

}  // namespace tensorsmith::codegen
