// Chooses the candidates of a batch by the improvement that each may bring. What is believed of a candidate
// (cost model and estimate) is corrected by the errors of such beliefs at measured programs with similar
// features. After each choice the next one counts on its result, so a batch spreads over programs that may
// be fast for different reasons, and a wrong belief costs one trial.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "search/pipeline.h"

namespace tensorsmith::search {

// The cost that a program is believed to have, before measurements of similar programs correct it.
struct Belief {
  double log_cost = 0;
  double sigma = 0;  // standard deviation of log(measured / believed cost)
};

struct BelievedProgram {
  Belief belief;
  const ProgramInputs* inputs = nullptr;
};

struct MeasuredBelief {
  BelievedProgram program;
  double log_cost = 0;  // measured; +inf for a program that failed
};

// Returns the indices of the measured programs that say most about others, in ascending order: the fastest
// and the latest ones. log_costs: as in MeasuredBelief, in the order of the measurements.
std::vector<size_t> informative(std::span<const double> log_costs);

// Returns the indices of `count` of the programs, or of all if they are fewer, best choice first. If nothing
// distinguishes the programs (no measurement, no features, or equal beliefs and few measurements), these are
// the first ones. `measured`: those that are informative(); the beliefs must be finite.
std::vector<size_t> choose_batch(const std::vector<BelievedProgram>& programs,
                                 const std::vector<MeasuredBelief>& measured, size_t count);

}  // namespace tensorsmith::search
