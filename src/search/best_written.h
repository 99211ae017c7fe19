// Proposals from a writer (for example a language model): it writes more candidates than are needed, and
// those with the best scores are proposed.
#pragma once

#include <vector>

#include "base/rng.h"
#include "search/strategy.h"

namespace tensorsmith::search {

// Asks the view's writer, which must not be null, for a multiple of `count` candidates and scores all of
// them. Returns at most `count` with the best finite scores, best first; none if the writer finds no new
// candidates or fails. An error of the writer is passed to view.failed.
std::vector<ProposedCandidate> best_written(const StrategyView& view, size_t count, Rng& rng);

}  // namespace tensorsmith::search
