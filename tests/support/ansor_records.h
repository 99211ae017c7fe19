// Measured records of TVM's Ansor as files hold them, for tests that replay them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sched/step.h"

namespace tensorsmith::test {

// Decompressed lines of a .zst file, every nth; none if there is no such file or no zstd.
std::vector<std::string> zst_lines(const std::string& path, size_t every = 1);

// One step of a record, ["SP", stage, iterator, ...], as ours. Throws where it has not the form of its kind.
sched::Step ansor_step(const nlohmann::json& step);

}  // namespace tensorsmith::test
