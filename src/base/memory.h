// The memory that this process may use, and how much it does.
#pragma once

#include <cstdint>
#include <string>

namespace tensorsmith {

// Bytes that this process and what it starts may use: the machine's, or what cgroups give if that is less.
int64_t memory_limit(const std::string& proc = "/proc", const std::string& sys = "/sys");

// Of this process, in bytes; 0 where the system does not say.
int64_t resident_bytes();

}  // namespace tensorsmith
