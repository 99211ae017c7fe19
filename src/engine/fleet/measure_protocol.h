// Serializes the options of a fleet's measurements as text that the requester and the workers
// share.
#pragma once

#include <string>

#include "measure/measurer.h"

namespace tensorsmith::engine {

// Returns as a JSON object the options that affect a measurement, except the record's settings.
std::string print_protocol(const measure::MeasureOptions& options);
// kCorrupt: not such an object, or a number out of range. Settings and options about this machine
// keep their defaults.
Result<measure::MeasureOptions> parse_protocol(const std::string& text);

}  // namespace tensorsmith::engine
