// The energy of a record's program, which is kept as a profile of the record.
#pragma once

#include <string>
#include <unordered_map>

#include "record/database.h"
#include "record/profile.h"

namespace tensorsmith::record {

// Returns the profile that keeps the joules of one run.
Profile energy_profile(std::string record_key, double joules);
// Returns the joules of one run by record key, for all records whose energy was measured.
Result<std::unordered_map<std::string, double>> energies(Database& database);

}  // namespace tensorsmith::record
