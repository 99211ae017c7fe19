// The part of a report that tells which decisions of the search mattered.
#pragma once

#include "engine/report_data.h"

namespace tensorsmith::engine {

// Sets the importance of each task of which enough programs ran that are still points of its design space as this version
// builds it. Builds the spaces on so many threads, of the devices that the setups describe.
void add_importance(int threads, Report& report);

}  // namespace tensorsmith::engine
