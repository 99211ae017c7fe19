// The machine's measured peak: the yardstick of every GFLOP/s.
#pragma once

#include "ir/stmt.h"
#include "target/target.h"

namespace tensorsmith::bench {

// acc = acc * x + y in enough independent vectors to fill the FMA units, all in registers.
struct PeakProgram {
  ir::Program program;
  double flops = 0;
};
PeakProgram peak_program(const target::Device& device);

// GFLOP/s of one core on it: the best of some runs.
Result<double> measured_peak_gflops(const target::Device& device);

}  // namespace tensorsmith::bench
