#pragma once

#include <string>

namespace tensorsmith {

// Returns the file that contains this code: the program, or the shared library that Tensorsmith is
// linked into. Empty if the system does not report it.
std::string code_file();

}  // namespace tensorsmith
