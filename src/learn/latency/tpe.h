// Search of hyper-parameters: at random, or by tree-structured Parzen estimators (Bergstra et al.,
// "Algorithms for Hyper-Parameter Optimization", NIPS 2011).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::learn {

// What a parameter may be: a number in [low, high], whole or not, evenly or logarithmically, or one of some
// values.
struct Dimension {
  std::string name;
  bool whole = false, logarithmic = false;
  double low = 0, high = 0;
  std::vector<nlohmann::json> choices;  // not empty: one of these
};
// "eta=0.01..0.3:log", "max_depth=4..12" (whole, as both ends are), "label=seconds|throughput". The error
// says what is wrong.
Result<Dimension> parse_dimension(const std::string& text);

struct Trial {
  nlohmann::json parameters;  // object: a value for each dimension
  double loss = 0;            // +inf: failed
};

enum class SearchMethod : uint8_t { kRandom, kTpe };

// The parameters of the next trial. The same space, trials and seed give the same. TPE begins with ten random
// trials. Then the best quarter of the trials and the others each make a density, of all dimensions together;
// of 24 draws from the density of the good ones that is taken at which it exceeds the other by the largest
// factor. (Each dimension for itself, as first proposed, stayed behind random search on a smooth function.)
nlohmann::json propose(std::span<const Dimension> space, std::span<const Trial> trials, SearchMethod method,
                       uint64_t seed);

}  // namespace tensorsmith::learn
