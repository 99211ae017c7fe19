// The disturbance of a measurement, and how far a disturbed time is trusted.
//
// The disturbance is the share of processor time, in [0, 1], that other processes, the system and the
// hypervisor took while a program was measured:
//
//   (busy + stolen seconds - seconds of the measuring process and its workers) / (processors * seconds)
//
// over the processors that the measuring process may run on. The seconds end with the last timed
// repeat and are at least measure::kDisturbanceWindow, because Linux counts busy time in steps of
// 10 ms. 0 means that the machine was quiet. It is not known for records of earlier versions, of
// GPUs, whose times other processes hardly change, of machines that do not tell their busy time, and of
// containers that may use only a part of their processors' time.
#pragma once

#include <algorithm>
#include <optional>

#include "record/record.h"

namespace tensorsmith::record {

// A single reading with at least this disturbance decides nothing. Chosen, not fitted: the rounding
// of busy time alone gives up to half of it.
inline constexpr double kDoubtfulDisturbance = 0.1;
// Least weight of a training row.
inline constexpr double kLeastTrust = 0.05;

inline bool is_doubtful(std::optional<double> disturbance) {
  return disturbance.value_or(0) >= kDoubtfulDisturbance;
}

// Returns the least share of a measured time that the program is expected to need on a quiet machine,
// which is also the weight of the time in training: (1 - disturbance)^2, at least kLeastTrust; 1 if
// the disturbance is not known. Chosen, not fitted: others leave a share 1 - disturbance of the
// processors to the program, and its threads wait for the one that lost most, which costs about as
// much again.
inline double trust(std::optional<double> disturbance) {
  const double left = 1 - disturbance.value_or(0);
  return std::max(left * left, kLeastTrust);
}

}  // namespace tensorsmith::record
