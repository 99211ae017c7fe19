// How many threads the system gives.
#pragma once

#include "base/sinks.h"

namespace tensorsmith::engine {

// `wanted` threads as far as the system starts them beside this one, at least 1; one warning where there are
// fewer. Libraries end the program where they get fewer than they were told to use.
int usable_threads(int wanted, LogSink& log);

}  // namespace tensorsmith::engine
