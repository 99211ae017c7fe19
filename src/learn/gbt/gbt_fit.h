// The online model's training: TVM's labels and weights over per-store rows.
#pragma once

#include <span>

#include "learn/cost_model.h"
#include "learn/gbt/pack_sum.h"

namespace tensorsmith::learn {

Result<PackSumFit> fit_gbt(std::span<const TrainingProgram> programs, const GbtOptions& options);

// y = the fastest seconds of its group / seconds; 0 for failed programs (+inf).
std::vector<float> relative_speeds(std::span<const double> seconds, std::span<const int> groups);

}  // namespace tensorsmith::learn
