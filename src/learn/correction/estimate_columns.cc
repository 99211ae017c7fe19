#include "learn/correction/estimate_columns.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::learn {

const feature::Schema& estimate_schema() {
  static const feature::Schema kSchema = {"estimate", "A program of our own design space, on a device",
                                          kEstimateSchema};
  return kSchema;
}

std::array<float, kEstimateColumns> estimate_columns(const space::EstimateParts& parts,
                                                     const target::Device& device) {
  std::array<float, kEstimateColumns> out{};
  double cycles = 0;
#define TENSORSMITH_TIME(name, meaning) cycles += parts.name;
#define TENSORSMITH_FACT(name, unit, meaning)
  TENSORSMITH_ESTIMATE_PARTS(TENSORSMITH_TIME, TENSORSMITH_FACT)
#undef TENSORSMITH_TIME
#undef TENSORSMITH_FACT
  const double share = 1 / std::max(cycles, 1.0);
  size_t at = 0;
  const auto put = [&](double value) { out[at++] = std::isfinite(value) ? static_cast<float>(value) : 0; };
#define TENSORSMITH_TIME(name, meaning) put(parts.name* share);
#define TENSORSMITH_FACT(name, unit, meaning) put(parts.name);
  TENSORSMITH_ESTIMATE_PARTS(TENSORSMITH_TIME, TENSORSMITH_FACT)
#undef TENSORSMITH_TIME
#undef TENSORSMITH_FACT
  put(device.register_bytes());
  put(device.compute_units());
  return out;
}

}  // namespace tensorsmith::learn
