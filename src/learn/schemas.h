// What the cost models read of programs and devices, for people.
#pragma once

#include <vector>

#include "feature/schema.h"

namespace tensorsmith::learn {

// Per-store rows, the summaries of each kind of program, and devices.
std::vector<feature::Schema> feature_schemas();

}  // namespace tensorsmith::learn
