// How benchmarks print a candidate.
#pragma once

#include <string>
#include <string_view>

#include "space/design_space.h"

namespace tensorsmith::bench {

// The sketch, then each decision's name and values, with a separator in front.
std::string candidate_text(const space::DesignSpace& space, const space::Candidate& candidate,
                           std::string_view separator);

}  // namespace tensorsmith::bench
