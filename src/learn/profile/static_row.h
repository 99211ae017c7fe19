// A program's static features as one row: what its summary says (feature/program_summary.h), without its size. What
// models of profiles are compared with, and what the two-step model predicts counters from.
#pragma once

#include <string>
#include <vector>

#include "feature/program_summary.h"

namespace tensorsmith::learn {

// Times of resources become logarithms of their quotient with the time of the operations at the device's peak; columns
// stay as they are. Programs of our own compiler (ProgramKind::kCpuNests) only: kUnsupported for others.
Result<std::vector<float>> static_row(const feature::ProgramSummary& summary);
size_t static_width();
std::string static_column(size_t column);

}  // namespace tensorsmith::learn
