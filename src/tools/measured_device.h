// Devices as records and models need them: with the attributes that only a measurement tells.
#pragma once

#include "record/database.h"
#include "target/target.h"

namespace tensorsmith::tools {

// True for this machine and weaker variants of it.
bool is_local(const target::Device& device);

// Describes a local device in the database, unless it is there: with its memory bandwidth, measured (a few
// tenths of a second).
Status register_device(const target::Device& device, record::Database& database);

}  // namespace tensorsmith::tools
