// The schemas of the inputs of the cost models, for documentation.
#pragma once

#include <vector>

#include "feature/schema.h"

namespace tensorsmith::learn {

// Returns the schemas of per-store rows, of the summaries of each kind of program, and of devices.
std::vector<feature::Schema> feature_schemas();

}  // namespace tensorsmith::learn
