// Samples candidates from the design spaces of common operators, as a search would measure them, and
// measures the cost of code generation for them. Compares kernels of two versions of the code generator.
#pragma once

namespace tensorsmith::bench {

// Arguments: [OPERATOR...] [--samples N] [--repeat N] [--seed S] [--device D] [--each] [--save DIR]
//   [--against DIR]
//
// Prints for each operator (with --each also for each candidate) the median, mean and largest processor
// time of code generation, and the size of the objects. --repeat generates each candidate N times and
// takes the least time, for machines that others use, too. --save stores the objects in DIR, which is
// made if absent. --against reads objects that another build saved there from the same samples, and runs
// both kernels of each candidate in turn. It prints the ratios of their fastest runs, this build's time
// divided by the other's, over all candidates and over the fastest fifth. Returns the exit code.
int run_sampled(int argc, char** argv);

}  // namespace tensorsmith::bench
