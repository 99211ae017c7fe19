// Runs the system's C compiler as a process. Internal to this directory.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/scratch_directory.h"

namespace tensorsmith::codegen {

Status write_file(const std::string& path, const char* data, size_t bytes);
Result<std::vector<char>> read_file(const std::string& path);

// Runs `cc` with the arguments and waits. Errors: kUnsupported if there is no compiler;
// kInvalidArgument if the compiler reports an error, with the first such line of its output.
Status run_c_compiler(const std::vector<std::string>& arguments, const ScratchDirectory& scratch);

}  // namespace tensorsmith::codegen
