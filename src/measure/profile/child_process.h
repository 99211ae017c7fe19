// Runs a function that returns counters in a child process.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/result.h"

namespace tensorsmith::measure {

// kTimeout after most_seconds; kIllegal with the signal if the process ended abnormally.
Result<std::map<std::string, double>> in_child_process(
    double most_seconds, const std::function<std::map<std::string, double>()>& function);

}  // namespace tensorsmith::measure
