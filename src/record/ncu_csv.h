// Parses the counters that NVIDIA's Nsight Compute prints with `ncu --csv --page raw`.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::record {

// Name and version of this importer in records.
inline constexpr const char* kNcuProfiler = "ncu-1";

// One launch of a kernel. Metrics are in base units: bytes, seconds, bytes per second; percent stay
// percent.
struct NcuLaunch {
  std::string kernel;
  std::map<std::string, double> metrics;
};

// Parses the table of the raw page. Ignores ncu's messages before the table ("==PROF== ...") and
// cells that are not numbers. kCorrupt with the line: not a table of the raw page (the details page
// has one line per metric), a row with another number of cells than the header, an unterminated
// quote, a kernel without any number. Safe for arbitrary text.
Result<std::vector<NcuLaunch>> parse_ncu_csv(std::string_view text);

// Merges the launches of one program: sums are added, everything else is averaged by duration
// (gpu__time_duration.sum), or unweighted without it.
std::map<std::string, double> merge_launches(const std::vector<NcuLaunch>& launches);

// Returns the record key that is part of the kernel's name; empty if there is none.
std::string record_in(const std::string& kernel, const std::set<std::string>& record_keys);

}  // namespace tensorsmith::record
