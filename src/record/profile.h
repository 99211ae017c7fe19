// What a profiler counted while a record's program ran, or a simulation of one. Plain data.
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace tensorsmith::record {

struct Profile {
  std::string record_key;  // Record::key
  std::string profiler;  // and its version, as counters of another one do not compare: "simulation-1", "ncu"
  std::map<std::string, double> counters;
};

// kInvalidArgument: an empty key or name, or a counter that is not finite.
Status check_profile(const Profile& profile);

// The counters as one JSON object, and back (kCorrupt).
std::string encode_counters(const std::map<std::string, double>& counters);
Result<std::map<std::string, double>> decode_counters(const std::string& text);

}  // namespace tensorsmith::record
