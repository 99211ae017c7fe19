// The clock that this machine's cores really run at: what the operating system says is often a nominal one.
#pragma once

#include "target/target.h"

namespace tensorsmith::target {

// 10^9 cycles a second that device.cores threads sustain while they multiply and add vectors of
// device.vector_bytes (wide vectors and many busy cores lower the clock), rounded to 0.1: the least of the
// threads. 0 where the architecture is not known. Takes a few tenths of a second.
double measure_clock_ghz(const Device& device);

// A device of this machine with that clock and the peak that goes with it, and what it had before as the base clock, which thus says
// that the other is measured: such a device stays as it is. Never below what it had: what disturbs a measurement makes no device slower.
Device with_measured_clock(Device device);

}  // namespace tensorsmith::target
