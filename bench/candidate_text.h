// Text form of a candidate in the output of benchmarks.
#pragma once

#include <string>
#include <string_view>

#include "space/design_space.h"

namespace tensorsmith::bench {

// Returns the sketch and each decision's name and values, each preceded by `separator`.
std::string candidate_text(const space::DesignSpace& space, const space::Candidate& candidate,
                           std::string_view separator);

}  // namespace tensorsmith::bench
