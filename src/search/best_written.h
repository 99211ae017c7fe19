// The best of what a writer (a language model) writes.
#pragma once

#include <vector>

#include "base/rng.h"
#include "search/strategy.h"

namespace tensorsmith::search {

// Asks the view's writer for several times `count` candidates and takes the best by the scores, best first. Empty where it
// has no new ones or fails, which the view is told.
std::vector<ProposedCandidate> best_written(const StrategyView& view, size_t count, Rng& rng);

}  // namespace tensorsmith::search
