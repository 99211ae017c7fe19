// The C compiler of this system, as a process. Internal to the room.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/scratch_directory.h"

namespace tensorsmith::codegen {

Status write_file(const std::string& path, const char* data, size_t bytes);
Result<std::vector<char>> read_file(const std::string& path);

// Runs `cc` with these arguments and waits. kUnsupported: there is none; kInvalidArgument, with the first line that it
// printed: it refused.
Status run_c_compiler(const std::vector<std::string>& arguments, const ScratchDirectory& scratch);

}  // namespace tensorsmith::codegen
