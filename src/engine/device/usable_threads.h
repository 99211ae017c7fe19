// Number of threads that the system allows.
#pragma once

#include "base/sinks.h"

namespace tensorsmith::engine {

// Returns `wanted`, or as many threads as the system can start besides this one, at least 1, with
// one warning if these are fewer. Libraries abort the program if they get fewer threads than
// configured.
int usable_threads(int wanted, LogSink& log);

}  // namespace tensorsmith::engine
