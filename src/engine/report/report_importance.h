// Adds to a report which search decisions mattered.
#pragma once

#include "engine/report/report_data.h"

namespace tensorsmith::engine {

// Sets the importance of each task that has enough successful programs that are still points of its
// design space in this version. Builds the design spaces, for the devices of the setups, on
// `threads` threads.
void add_importance(int threads, Report& report);

}  // namespace tensorsmith::engine
