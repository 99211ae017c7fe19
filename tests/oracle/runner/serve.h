// Answers requests to the runner.
#pragma once

#include "request.h"

namespace tensorsmith::oracle {

// Does what is requested and writes output_RUN_I.bin into the request's directory. Always returns a
// reply; failures are reported in it.
Reply serve(const Request& request);

}  // namespace tensorsmith::oracle
