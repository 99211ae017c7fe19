#pragma once

#include <string>

namespace tensorsmith::tools {

// The cost model of searches on CPUs.
inline constexpr const char* kCostModelFile = "cpu.safetensors";
// The language model that writes schedules for CPUs.
inline constexpr const char* kLanguageModelFile = "cpu.lm";

// A file that is shipped with the program: beside the installed program (../share/tensorsmith) or in the
// source folder of a build (../../models). Empty if there is none.
std::string shipped_file(const std::string& name);

}  // namespace tensorsmith::tools
