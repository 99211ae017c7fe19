// Instruction sets for which the backends generate different code, so that tests can cover each: by
// running on this machine's processor as if it were a weaker one, and by generating code for any
// processor without running it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "target/target.h"

namespace tensorsmith::test {

// From weak to strong: "sse4.2", "avx" (no FMA, no vectors of integers), "avx2", "avxvnni" (AVX2 with dot
// products of bytes), "avx512" (F, BW, DQ, VL), "avx512vnni", "avx512bf16", "amx".
const std::vector<std::string>& all_isas();

// Returns an artificial device of two cores with exactly these instructions.
target::Device device_with(const std::string& isa);

// Returns this machine restricted to exactly these instructions; nothing if its processor lacks
// some.
std::optional<target::Device> local_device_with(const std::string& isa);

}  // namespace tensorsmith::test
