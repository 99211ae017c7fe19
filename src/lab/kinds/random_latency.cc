// Predicts seconds from a hash of the features and a seed: a baseline that every model must beat.
#include <bit>
#include <cmath>

#include "base/hash.h"
#include "lab/kinds/kinds.h"
#include "lab/kinds/untrained_kind.h"

namespace tensorsmith::lab {

namespace {

class RandomLatency final : public UntrainedModel {
 public:
  static constexpr const char* kKind = "random";
  using UntrainedModel::UntrainedModel;

 private:
  double seconds_of(const learn::ProgramQuery& query) const override {
    Hasher hasher;
    hasher.add(card().seed).add(query.device->name);
    for (const float value : query.leaves->vectors.values) hasher.add(std::bit_cast<uint32_t>(value));
    // Spread over the usual range of tensor programs: from a microsecond to a second.
    return 1e-6 * std::pow(1e6, hasher.uniform());
  }
};

}  // namespace

const learn::CostModelKind& random_kind() { return untrained_kind<RandomLatency>(); }

}  // namespace tensorsmith::lab
