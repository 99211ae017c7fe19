// Counters of NVIDIA's Nsight Compute: what `ncu --csv --page raw` prints.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::record {

// Of the version of this importer, as records name it.
inline constexpr const char* kNcuProfiler = "ncu-1";

// A launch of a kernel. Metrics in their base units: bytes, seconds, bytes a second; percent stay percent.
struct NcuLaunch {
  std::string kernel;
  std::map<std::string, double> metrics;
};

// Lines of ncu's own before the table ("==PROF== ...") are left out, as are cells that are no numbers. kCorrupt with
// the line: no table of the raw page (the details page has a line a metric), a row with more or fewer cells than the
// header, a quote that does not end, a kernel without a number. Any text is safe.
Result<std::vector<NcuLaunch>> parse_ncu_csv(std::string_view text);

// Several launches that are one program: sums add up, everything else is a mean by duration (gpu__time_duration.sum, or
// evenly without it).
std::map<std::string, double> merge_launches(const std::vector<NcuLaunch>& launches);

// The record whose key stands in the kernel's name; empty: none of these.
std::string record_in(const std::string& kernel, const std::set<std::string>& record_keys);

}  // namespace tensorsmith::record
