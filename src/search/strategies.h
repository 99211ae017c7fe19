// The table of strategies. A new one needs a file, two lines here, and a line in the list of
// sources.
#pragma once

#include <array>

#include "search/strategy.h"

namespace tensorsmith::search {

std::unique_ptr<Strategy> make_evolutionary_strategy();
std::unique_ptr<Strategy> make_annealing_strategy();
std::unique_ptr<Strategy> make_random_strategy();
std::unique_ptr<Strategy> make_mixed_strategy();
std::unique_ptr<Strategy> make_descent_strategy();
std::unique_ptr<Strategy> make_exhaustive_strategy();
std::unique_ptr<Strategy> make_transfer_strategy();
std::unique_ptr<Strategy> make_ansor_strategy();
std::unique_ptr<Strategy> make_written_strategy();

inline constexpr std::array kStrategies{
    StrategyKind{
        .name = "evolutionary", .make = make_evolutionary_strategy, .writer = StrategyKind::Writer::kAsked},
    StrategyKind{"annealing", make_annealing_strategy},
    StrategyKind{"random", make_random_strategy, /*uses_scores=*/false},
    StrategyKind{"mixed", make_mixed_strategy},
    StrategyKind{"descent", make_descent_strategy},
    StrategyKind{"exhaustive", make_exhaustive_strategy, /*uses_scores=*/false},
    StrategyKind{
        .name = "transfer", .make = make_transfer_strategy, .uses_scores = false, .only_seeds = true},
    StrategyKind{.name = "ansor", .make = make_ansor_strategy, .uses_draft = false},
    StrategyKind{.name = "lm", .make = make_written_strategy, .writer = StrategyKind::Writer::kNeeded},
};

}  // namespace tensorsmith::search
