#include "search/pipeline.h"

namespace tensorsmith::search {

feature::PerStoreOptions feature_options(const target::Device& device) {
  feature::PerStoreOptions options;
  options.cacheline_bytes = device.cacheline_bytes;
  options.gpu = device.kind == target::DeviceKind::kGpu;
  return options;
}

namespace {

Status extract(feature::ScheduleFeatures& features, const sched::Schedule& schedule,
               const learn::ModelInputs& wanted, ProgramInputs& out) {
  if (wanted.rows) {
    TS_ASSIGN_OR_RETURN(out.rows, features.per_store(schedule));
  }
  if (wanted.leaves) {
    TS_ASSIGN_OR_RETURN(out.leaves, features.leaves(schedule));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const ProgramInputs>> inputs_of(const ir::Workload& workload,
                                                       const sched::Trace& trace,
                                                       const feature::PerStoreOptions& options,
                                                       const learn::ModelInputs& wanted) {
  TS_ASSIGN_OR_RETURN(const auto schedule, sched::replay(workload, trace));
  auto out = std::make_shared<ProgramInputs>();
  feature::ScheduleFeatures features(options);
  TS_RETURN_IF_ERROR(extract(features, schedule, wanted, *out));
  if (wanted.trace) out->trace = trace;
  return std::shared_ptr<const ProgramInputs>(std::move(out));
}

Result<std::shared_ptr<const ProgramInputs>> CandidateFeatures::of(const space::Candidate& candidate) {
  TS_RETURN_IF_ERROR(space_.to_schedule(candidate, schedule_));
  auto out = std::make_shared<ProgramInputs>();
  TS_RETURN_IF_ERROR(extract(features_, schedule_, wanted_, *out));
  if (wanted_.trace) {
    TS_ASSIGN_OR_RETURN(out->trace, space_.to_trace(candidate));
  }
  return std::shared_ptr<const ProgramInputs>(std::move(out));
}

record::DesignPoint to_point(const space::Candidate& candidate) {
  return {candidate.sketch, candidate.decisions};
}

space::Candidate from_point(const record::DesignPoint& point) { return {point.sketch, point.decisions}; }

}  // namespace tensorsmith::search
