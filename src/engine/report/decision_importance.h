// How much of the variation of measured times each decision explains: a one-way analysis of
// variance of the logarithm of the times, corrected for chance. docs/report.md explains the shares
// and where they mislead.
#pragma once

#include <cstdint>
#include <vector>

namespace tensorsmith::engine {

// The values of one decision in all programs. Only programs of the same group are compared, so that
// a decision gets no credit for what the group explains.
struct DecisionColumn {
  std::vector<int> group;      // by program; -1: the program does not have this decision
  std::vector<int64_t> value;  // by program
};

struct ExplainedSpread {
  // Share of the variance of all programs, in [0, 1] up to chance: a negative share explains less
  // than random values do on average.
  double share = 0;
  // 95th percentile of the share that shuffled times reach.
  double chance = 0;
};

// `logs` are by program. The chance levels come from `shuffles` random shuffles of the times within
// their groups.
std::vector<ExplainedSpread> explained_spread(const std::vector<double>& logs,
                                              const std::vector<DecisionColumn>& columns, int shuffles,
                                              uint64_t seed);

}  // namespace tensorsmith::engine
