#include "record/energy.h"

#include <utility>

namespace tensorsmith::record {

namespace {

// Stored in databases, so never renamed.
constexpr const char* kEnergyProfiler = "rapl";
constexpr const char* kJoulesCounter = "joules";

}  // namespace

Profile energy_profile(std::string record_key, double joules) {
  return {std::move(record_key), kEnergyProfiler, {{kJoulesCounter, joules}}};
}

Result<std::unordered_map<std::string, double>> energies(Database& database) {
  std::unordered_map<std::string, double> joules;
  TS_RETURN_IF_ERROR(database.for_each_profile(kEnergyProfiler, [&](const Profile& profile) -> Status {
    if (const auto at = profile.counters.find(kJoulesCounter); at != profile.counters.end())
      joules[profile.record_key] = at->second;
    return {};
  }));
  return joules;
}

}  // namespace tensorsmith::record
