// Measured peak rate of the machine, with which benchmarks compare GFLOP/s.
#pragma once

#include "ir/stmt.h"
#include "target/target.h"

namespace tensorsmith::bench {

// Computes acc = acc * x + y in registers, with enough independent vectors to fill the FMA units.
struct PeakProgram {
  ir::Program program;
  double flops = 0;
};
PeakProgram peak_program(const target::Device& device);

// Returns the GFLOP/s of one core on the peak program, the best of several runs.
Result<double> measured_peak_gflops(const target::Device& device);

}  // namespace tensorsmith::bench
