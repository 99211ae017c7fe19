#include "search/search_space.h"

#include <cmath>
#include <limits>

namespace tensorsmith::search {

std::vector<space::Candidate> DesignedSpace::listed(size_t limit) const {
  std::vector<space::Candidate> all;
  for (size_t k = 0; k < space_.num_sketches(); ++k) {
    const int sketch = static_cast<int>(k);
    if (space_.size(sketch) > static_cast<double>(limit)) continue;
    for (auto& candidate : space_.enumerate(sketch, limit))
      if (space_.check(candidate).ok()) all.push_back(std::move(candidate));
  }
  return all;
}

double DesignedSpace::distance(const space::Candidate& a, const space::Candidate& b) const {
  if (a.sketch != b.sketch) return std::numeric_limits<double>::infinity();
  double sum = 0;
  size_t at = 0;
  for (const space::DecisionSlot& slot : space_.slots(a.sketch)) {
    const bool lengths = slot.kind == space::DecisionKind::kTileLengths;
    for (size_t part = 0; part < (lengths ? slot.parts : 1); ++part, ++at) {
      const auto x = static_cast<double>(a.decisions[at]), y = static_cast<double>(b.decisions[at]);
      // Another category is another octave.
      sum += lengths ? std::abs(std::log2(x / y)) : x != y ? 1 : 0;
    }
  }
  return sum;
}

Result<space::Candidate> DesignedSpace::rescale(const SearchSpace& source,
                                                const space::Candidate& candidate) const {
  const auto* other = dynamic_cast<const DesignedSpace*>(&source);
  if (other == nullptr) return Error{ErrorCode::kUnsupported, "", "the source is no design space"};
  return space_.rescale(other->space_, candidate);
}

}  // namespace tensorsmith::search
