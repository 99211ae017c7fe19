// A function in a process of its own, whose counters come back.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/result.h"

namespace tensorsmith::measure {

// kTimeout after most_seconds; kIllegal where the process ended otherwise, with the signal.
Result<std::map<std::string, double>> in_child_process(
    double most_seconds, const std::function<std::map<std::string, double>()>& function);

}  // namespace tensorsmith::measure
