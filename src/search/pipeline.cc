#include "search/pipeline.h"

namespace tensorsmith::search {

feature::PerStoreOptions feature_options(const target::Device& device) {
  feature::PerStoreOptions options;
  options.cacheline_bytes = device.cacheline_bytes;
  options.gpu = device.kind == target::DeviceKind::kGpu;
  return options;
}

Result<std::shared_ptr<const feature::FeatureMatrix>> features_of(const ir::Workload& workload,
                                                                  const sched::Trace& trace,
                                                                  const feature::PerStoreOptions& options) {
  TS_ASSIGN_OR_RETURN(const auto schedule, sched::replay(workload, trace));
  TS_ASSIGN_OR_RETURN(auto features, feature::extract_per_store(schedule, options));
  return std::make_shared<const feature::FeatureMatrix>(std::move(features));
}

Result<std::shared_ptr<const feature::FeatureMatrix>> CandidateFeatures::of(
    const space::Candidate& candidate) {
  TS_RETURN_IF_ERROR(space_.to_schedule(candidate, schedule_));
  TS_ASSIGN_OR_RETURN(auto features, features_.per_store(schedule_));
  return std::make_shared<const feature::FeatureMatrix>(std::move(features));
}

record::DesignPoint to_point(const space::Candidate& candidate) {
  return {candidate.sketch, candidate.decisions};
}

space::Candidate from_point(const record::DesignPoint& point) { return {point.sketch, point.decisions}; }

}  // namespace tensorsmith::search
