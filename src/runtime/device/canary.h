// A kernel that is known to be right.
#pragma once

#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

// Whether the device runs kernels: a small one, whose result is checked. After a kernel that went wrong, and before
// others are blamed for what the device does not do. kMismatch: a wrong result; else as the calls of Gpu.
Status run_canary(Gpu& gpu);

}  // namespace tensorsmith::runtime
