// Candidates that a search would measure, sampled from the design spaces of common operators: what code
// generation costs for them, and whether two versions of the code generator make equally fast kernels.
#pragma once

namespace tensorsmith::bench {

// Arguments: [OPERATOR...] [--samples N] [--repeat N] [--seed S] [--device D] [--each] [--save DIR]
//   [--against DIR]
//
// Prints for each operator (and, with --each, candidate) the processor time of code generation, median, mean
// and largest, and the size of the objects. --repeat takes the least of N times of a candidate, for machines
// that others use too. --save keeps the objects in DIR (made if absent). --against takes those that another
// build saved there from the same samples and runs both kernels of each candidate in turn: ratios of their
// fastest runs, this build's by the other's; of all candidates, and of the fastest fifth. Returns the exit
// code.
int run_sampled(int argc, char** argv);

}  // namespace tensorsmith::bench
