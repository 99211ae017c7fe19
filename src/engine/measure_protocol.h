// How a fleet's jobs are timed, as text that asker and worker understand.
#pragma once

#include <string>

#include "measure/measurer.h"

namespace tensorsmith::engine {

// What of the options decides a measurement, but for the record's settings, as a JSON object.
std::string print_protocol(const measure::MeasureOptions& options);
// kCorrupt: no such object, or a number that makes no sense. Settings and what concerns this machine are as by default.
Result<measure::MeasureOptions> parse_protocol(const std::string& text);

}  // namespace tensorsmith::engine
