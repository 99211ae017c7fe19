// The parts of a design space's estimate as columns, for models that learn where the estimate errs.
#pragma once

#include <array>
#include <span>

#include "feature/schema.h"
#include "space/estimate/parts.h"
#include "target/target.h"

namespace tensorsmith::learn {

#define TENSORSMITH_TIME(name, meaning) \
  feature::Column::plain("estimate." #name, "share", "Share of the estimate's cycles: " meaning "."),
#define TENSORSMITH_FACT(name, unit, meaning) \
  feature::Column::plain("estimate." #name, unit, "In the plan that takes longest: " meaning "."),
inline constexpr auto kEstimateSchema = std::to_array<feature::Column>({
    TENSORSMITH_ESTIMATE_PARTS(TENSORSMITH_TIME, TENSORSMITH_FACT) feature::Column::device(
        feature::Column::plain("device.vector_bytes", "bytes", "Bytes of a vector register.")),
    feature::Column::device(
        feature::Column::plain("device.threads", "threads", "Threads that run the program.")),
});
#undef TENSORSMITH_TIME
#undef TENSORSMITH_FACT

inline constexpr size_t kEstimateColumns = kEstimateSchema.size();
const feature::Schema& estimate_schema();
// Returns the columns in the order of the schema; all values are finite.
std::array<float, kEstimateColumns> estimate_columns(const space::EstimateParts& parts,
                                                     const target::Device& device);

}  // namespace tensorsmith::learn
