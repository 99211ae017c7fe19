// The memory that this process may use, and the memory that it uses.
#pragma once

#include <cstdint>
#include <string>

namespace tensorsmith {

// Returns the bytes that this process and its children may use: the machine's memory, or the
// cgroups' limit if that is less.
int64_t memory_limit(const std::string& proc = "/proc", const std::string& sys = "/sys");

// Returns the resident memory of this process in bytes; 0 if the system does not report it.
int64_t resident_bytes();

}  // namespace tensorsmith
