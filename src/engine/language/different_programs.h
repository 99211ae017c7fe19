// Removes candidates that make the same program.
#pragma once

#include <vector>

#include "base/result.h"
#include "space/design_space.h"

namespace tensorsmith::engine {

// Returns at most `count` candidates in their order, without those that make the same program as an
// earlier one. Errors: those of DesignSpace::to_trace.
Result<std::vector<space::Candidate>> different_programs(const space::DesignSpace& space,
                                                         std::vector<space::Candidate> candidates,
                                                         size_t count);

}  // namespace tensorsmith::engine
