// Counters of a record's program, from a profiler or a simulation. Plain data.
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace tensorsmith::record {

struct Profile {
  std::string record_key;  // Record::key
  // With its version, since counters of different versions are not comparable: "simulation-1",
  // "ncu".
  std::string profiler;
  std::map<std::string, double> counters;
};

// kInvalidArgument: an empty key or name, or a counter that is not finite.
Status check_profile(const Profile& profile);

// Converts the counters to one JSON object and back (kCorrupt).
std::string encode_counters(const std::map<std::string, double>& counters);
Result<std::map<std::string, double>> decode_counters(const std::string& text);

}  // namespace tensorsmith::record
