// The static features of a program as one row: its summary (feature/program_summary.h) without
// quantities that depend on its size. Models on profiles are compared with models on this row, and
// the two-step model predicts the counters from it.
#pragma once

#include <vector>

#include "feature/program_summary.h"

namespace tensorsmith::learn {

// Times of resources become log2 of their ratio to the time of the operations at the device's peak;
// the other columns are unchanged. kUnsupported for programs that Tensorsmith has not compiled
// (ProgramKind::kCpuNests).
Result<std::vector<float>> static_row(const feature::ProgramSummary& summary);
size_t static_width();

}  // namespace tensorsmith::learn
