// A kernel that is known to be correct.
#pragma once

#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

// Runs a small kernel on the device and checks its result. Used after a kernel has failed, to tell
// whether the device itself is broken before other kernels are blamed. Returns kMismatch for a
// wrong result, otherwise the errors of Gpu's calls.
Status run_canary(Gpu& gpu);

}  // namespace tensorsmith::runtime
