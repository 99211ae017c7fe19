// The table of all strategies: those of the product and those kept for comparison. A new strategy for
// comparison needs a file, a few lines here, and a line in the list of sources.
#pragma once

#include <array>

#include "search/strategies.h"

namespace tensorsmith::lab {

std::unique_ptr<search::Strategy> make_annealing_strategy();
std::unique_ptr<search::Strategy> make_descent_strategy();
std::unique_ptr<search::Strategy> make_mixed_strategy();
std::unique_ptr<search::Strategy> make_written_strategy();

inline constexpr search::StrategyKind kAnnealingStrategy{"annealing", make_annealing_strategy};
inline constexpr search::StrategyKind kDescentStrategy{"descent", make_descent_strategy};
inline constexpr search::StrategyKind kMixedStrategy{"mixed", make_mixed_strategy};
// Ansor's evolution without the extensions, to measure their effect.
inline constexpr search::StrategyKind kAnsorStrategy{
    .name = "ansor",
    .make = [] { return search::make_evolutionary_strategy({false, false, false}); },
    .uses_draft = false};
inline constexpr search::StrategyKind kWrittenStrategy{
    .name = "lm", .make = make_written_strategy, .asks_writer = true, .needs_writer = true};

inline constexpr std::array kStrategies{&search::kEvolutionaryStrategy,
                                        &search::kRandomStrategy,
                                        &search::kExhaustiveStrategy,
                                        &kAnnealingStrategy,
                                        &kDescentStrategy,
                                        &kMixedStrategy,
                                        &kAnsorStrategy,
                                        &search::kTransferStrategy,
                                        &kWrittenStrategy};

// Names of all strategies as "a, b, c", for help texts and errors.
std::string strategy_names();
// kInvalidArgument for an unknown name; the reason lists the names.
Result<const search::StrategyKind*> find_strategy(std::string_view name);

// Names of the strategies that `tune` offers: all but `transfer` and `lm`.
std::string tuning_strategy_names();
// kInvalidArgument for another name. For `transfer` and `lm` the reason names what to use instead.
Result<const search::StrategyKind*> find_tuning_strategy(std::string_view name);

}  // namespace tensorsmith::lab
