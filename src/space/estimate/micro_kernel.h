// Cycles of the innermost tile of a contraction, whose accumulators stay in registers.
#pragma once

#include <cstdint>
#include <limits>

#include "space/estimate/machine.h"
#include "space/estimate/parts.h"

namespace tensorsmith::space {

// The work of a register tile in one step of the reduction. Counts are of vectors.
struct RegisterTile {
  double accumulators = 1;
  double products = 1;      // instructions that add to accumulators
  double loads = 1;         // loads of operands, including broadcasts
  double broadcasts = 0;    // those of `loads` that broadcast an element to all lanes
  double shuffles = 0;      // shuffles that assemble strided operands
  double operands = 1;      // operand vectors and broadcast elements that are live besides the accumulators
  double vectors = 1;       // those of `operands` that lie along the vector axis
  int64_t lanes = 1;        // lanes of a vector
  int element_bytes = 4;    // size of an accumulator's element
  double latency = 1;       // cycles from a product until its sum can be used
  double instructions = 1;  // code size of all steps that are unrolled
  // Steps of one sum; the next sum does not wait for it.
  double chain = std::numeric_limits<double>::infinity();
  double loop_cycles = 0;  // cycles per step for the loops around it
};

// Returns the cycles of one step.
double step_cycles(const EstimateMachine& machine, const RegisterTile& tile);

// Fills the quantities of the tile. cycles: those of one step.
void set_tile_parts(const EstimateMachine& machine, const RegisterTile& tile, double cycles,
                    EstimateParts& parts);

// Returns the time of two activities that overlap: the longer one plus the share of the shorter one
// that is not hidden.
double overlapped(double a, double b, double not_hidden);

}  // namespace tensorsmith::space
