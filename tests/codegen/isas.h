// Instruction sets that have code of their own, so that tests can run on each: on this machine's processor as
// if it were a weaker one, and as code for any processor that is only looked at.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "target/target.h"

namespace tensorsmith::test {

// From weak to strong: "sse4.2", "avx" (no FMA, no vectors of integers), "avx2", "avxvnni" (AVX2 with dot
// products of bytes), "avx512" (F, BW, DQ, VL), "avx512vnni", "avx512bf16", "amx".
const std::vector<std::string>& all_isas();

// A made-up device of two cores with exactly these instructions.
target::Device device_with(const std::string& isa);

// This machine with exactly these instructions; nothing if its processor lacks some.
std::optional<target::Device> local_device_with(const std::string& isa);

}  // namespace tensorsmith::test
