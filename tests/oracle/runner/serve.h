// Answers to the runner's requests.
#pragma once

#include "request.h"

namespace tensorsmith::oracle {

// Does what is asked, writes output_RUN_I.bin into the request's directory. Never fails as a whole: what went
// wrong is in the reply.
Reply serve(const Request& request);

}  // namespace tensorsmith::oracle
