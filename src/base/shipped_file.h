// Locates data files that are installed with Tensorsmith.
#pragma once

#include <string>

namespace tensorsmith {

// Records of fast programs on CPUs, from which searches start.
inline constexpr const char* kStarterFile = "starter.jsonl.zst";
// Cost model for latency predictions on CPUs.
inline constexpr const char* kCostModelFile = "cpu.safetensors";
// Cost model for searches on CPUs.
inline constexpr const char* kSearchModelFile = "cpu_correction.safetensors";
// Language model that writes schedules for CPUs.
inline constexpr const char* kLanguageModelFile = "cpu.lm";

// Returns the path of a shipped file: in ../share/tensorsmith relative to the directory of the
// program or library that contains this code, or, in a build directory BUILD/PRESET of the source tree, in
// its models directory. Empty if there is none.
std::string shipped_file(const std::string& name);

}  // namespace tensorsmith
