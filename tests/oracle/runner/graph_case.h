// One model through import, passes, compilation and runtime, in several variants.
#pragma once

#include "request.h"

namespace tensorsmith::oracle {

// Does what is asked, writes output_RUN_I.bin into the request's directory. Never fails as a whole: what went
// wrong is in the reply.
//
// A run goes the way of `tensorsmith compile` and the C interface: a compiled model is written, loaded and run
// twice on buffers with fences, outputs filled with other bytes before each run. Outputs that differ between
// the two (not written, or not deterministic) and changed canaries are errors of the run; writing to an input
// crashes.
Reply run_case(const Request& request);

}  // namespace tensorsmith::oracle
