// Cycles of the innermost tile of a contraction, whose accumulators are in registers.
#pragma once

#include <cstdint>
#include <limits>

#include "space/estimate/machine.h"

namespace tensorsmith::space {

// What one step of the reduction does with a register tile. Counts are of vectors.
struct RegisterTile {
  double accumulators = 1;
  double products = 1;      // instructions that add to accumulators
  double loads = 1;         // of operands, elements in all lanes included
  double broadcasts = 0;    // of these, elements in all lanes
  double shuffles = 0;      // that put strided operands together
  double operands = 1;      // vectors and elements that are live beside the accumulators
  double vectors = 1;       // of these, along the vector axis
  int64_t lanes = 1;        // of a vector
  int element_bytes = 4;    // of the accumulators
  double latency = 1;       // of a product, cycles
  double instructions = 1;  // of the steps that are unrolled one after the other
  double chain = std::numeric_limits<
      double>::infinity();  // steps of a sum, after which another one begins that does not wait for it
  double loop_cycles = 0;   // of the loops around a step
};

// Of a step.
double step_cycles(const Machine& machine, const RegisterTile& tile);

// Of two things that go on together: the longer one and the share of the other that is not hidden.
double overlapped(double a, double b, double not_hidden);

}  // namespace tensorsmith::space
