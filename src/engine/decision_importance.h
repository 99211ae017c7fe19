// How much of the spread of measured times the values of each decision explain: one-way analyses of variance of the
// logarithm of the times, less what chance explains. docs/report.md says what the shares mean and where they mislead.
#pragma once

#include <cstdint>
#include <vector>

namespace tensorsmith::engine {

// A decision as it was taken in each of the programs. Only programs of one group are compared with each other, so that
// a decision is not credited with what the group explains.
struct DecisionColumn {
  std::vector<int> group;      // by program; -1: the program does not have the decision
  std::vector<int64_t> value;  // by program
};

struct ExplainedSpread {
  // Of the variance of all programs, between 0 and 1 but for chance: below 0 the values explain less than random ones do
  // on average.
  double share = 0;
  // What shuffled times reach in one of twenty cases.
  double chance = 0;
};

// logs: by program. The chance comes from `shuffles` shuffles of the times within their groups, by seed.
std::vector<ExplainedSpread> explained_spread(const std::vector<double>& logs,
                                              const std::vector<DecisionColumn>& columns, int shuffles,
                                              uint64_t seed);

}  // namespace tensorsmith::engine
