#include "learn/schemas.h"

#include "feature/profile_schema_gpu.h"
#include "feature/program_summary.h"
#include "learn/correction/estimate_columns.h"
#include "learn/latency/device_columns.h"

namespace tensorsmith::learn {

std::vector<feature::Schema> feature_schemas() {
  std::vector<feature::Schema> out = {feature::per_store_schema()};
  for (int k = 0; k < feature::kProgramKinds; ++k) {
    const auto& summary = feature::summary_schema(static_cast<feature::ProgramKind>(k));
    out.push_back(summary.resources);
    out.push_back(summary.columns);
  }
  out.push_back(device_schema());
  out.push_back(estimate_schema());
  out.push_back(feature::cpu_profile_schema());
  out.push_back(feature::gpu_profile_schema());
  return out;
}

}  // namespace tensorsmith::learn
