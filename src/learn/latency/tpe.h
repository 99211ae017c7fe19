// Hyper-parameter search: random, or by tree-structured Parzen estimators (Bergstra et al.,
// "Algorithms for Hyper-Parameter Optimization", NIPS 2011).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::learn {

// The values that a parameter may take: a number in [low, high], integer or real, on a linear or
// logarithmic scale, or one of a list of choices.
struct Dimension {
  std::string name;
  bool whole = false, logarithmic = false;
  double low = 0, high = 0;
  std::vector<nlohmann::json> choices;  // if not empty: the value is one of these
};
// Parses "eta=0.01..0.3:log", "max_depth=4..12" (integer, because both ends are) or
// "label=seconds|throughput".
Result<Dimension> parse_dimension(const std::string& text);

struct Trial {
  nlohmann::json parameters;  // object with a value for each dimension
  double loss = 0;            // +inf: failed
};

enum class SearchMethod : uint8_t { kRandom, kTpe };

// Returns the parameters of the next trial; deterministic in space, trials and seed. The first ten
// trials of TPE are random. Afterwards, the best quarter of the trials and the remaining ones each
// define a density over all dimensions together. Of 24 draws from the density of the good trials,
// the one with the largest ratio of the good density to the other is taken. (Treating each
// dimension separately, as first proposed, was worse than random search on a smooth function.)
nlohmann::json propose(std::span<const Dimension> space, std::span<const Trial> trials, SearchMethod method,
                       uint64_t seed);

}  // namespace tensorsmith::learn
