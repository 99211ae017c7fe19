// Selects the best candidates of a writer (a language model).
#pragma once

#include <vector>

#include "base/rng.h"
#include "search/strategy.h"

namespace tensorsmith::search {

// Asks the view's writer for several times `count` candidates and returns those with the best
// scores, best first. Empty if the writer has no new candidates, or fails; a failure is reported to
// the view.
std::vector<ProposedCandidate> best_written(const StrategyView& view, size_t count, Rng& rng);

}  // namespace tensorsmith::search
