#pragma once

#include "search/strategy.h"

namespace tensorsmith::search {

std::unique_ptr<Strategy> make_evolutionary_strategy();
std::unique_ptr<Strategy> make_random_strategy();
std::unique_ptr<Strategy> make_annealing_strategy();
std::unique_ptr<Strategy> make_mixed_strategy();

}  // namespace tensorsmith::search
