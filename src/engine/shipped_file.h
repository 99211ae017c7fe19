// Data files that come with Tensorsmith.
#pragma once

#include <string>

namespace tensorsmith::engine {

// Records of fast programs on CPUs, which searches begin with.
inline constexpr const char* kStarterFile = "starter.jsonl.zst";
// The cost model of searches on CPUs, and of predictions of latency there.
inline constexpr const char* kCostModelFile = "cpu.safetensors";
// The language model that writes schedules for CPUs.
inline constexpr const char* kLanguageModelFile = "cpu.lm";

// Its path: in ../share/tensorsmith seen from the folder of the program or of the library that holds this code, or, of a
// build folder, in the source folder's models. Empty if there is none.
std::string shipped_file(const std::string& name);

}  // namespace tensorsmith::engine
