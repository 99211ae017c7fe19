// Measures the clock at which the cores of this machine really run; the operating system often
// reports only a nominal one.
#pragma once

#include "target/target.h"

namespace tensorsmith::target {

// Returns the clock in GHz, rounded to 0.1, that the threads sustain while one thread per core multiplies
// and adds vectors of the device's width (wide vectors and many busy cores lower the clock). The
// slowest thread counts. Returns 0 on architectures other than x86-64 and AArch64. Takes a few
// tenths of a second.
double measure_clock_ghz(const Device& device);

// Sets the clock of a device that describes this machine to the measured one, scales the peak with
// it, and keeps the previous clock as the base clock. A device with a base clock is returned
// unchanged, since its clock has been measured before. The clock is never lowered: a disturbed
// measurement must not make the device slower.
Device with_measured_clock(Device device);

}  // namespace tensorsmith::target
