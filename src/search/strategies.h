// The strategies of the product; lab/strategies/strategies.h has those kept for comparison. A new one
// needs a file, a few lines here, a line in the list of sources, and an entry in the table of all
// strategies in lab/strategies/strategies.h.
#pragma once

#include "search/strategy.h"

namespace tensorsmith::search {

// Extensions of Ansor's evolution.
struct EvolutionExtensions {
  bool draft = true, descent = true, untried_structures = true;
};

std::unique_ptr<Strategy> make_evolutionary_strategy(const EvolutionExtensions& extensions);
std::unique_ptr<Strategy> make_random_strategy();
std::unique_ptr<Strategy> make_exhaustive_strategy();
std::unique_ptr<Strategy> make_transfer_strategy();

inline constexpr StrategyKind kEvolutionaryStrategy{
    .name = "evolutionary", .make = [] { return make_evolutionary_strategy({}); }, .asks_writer = true};
inline constexpr StrategyKind kRandomStrategy{
    .name = "random", .make = make_random_strategy, .uses_scores = false};
inline constexpr StrategyKind kExhaustiveStrategy{
    .name = "exhaustive", .make = make_exhaustive_strategy, .uses_scores = false};
inline constexpr StrategyKind kTransferStrategy{
    .name = "transfer", .make = make_transfer_strategy, .uses_scores = false, .only_seeds = true};

// The strategy used if none is given.
inline constexpr const StrategyKind& kDefaultStrategy = kEvolutionaryStrategy;

}  // namespace tensorsmith::search
