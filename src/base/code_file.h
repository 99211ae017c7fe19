#pragma once

#include <string>

namespace tensorsmith {

// The file that this code runs from: the program, or the shared library that Tensorsmith is linked into. Empty if the
// system does not tell.
std::string code_file();

}  // namespace tensorsmith
