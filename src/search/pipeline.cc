#include "search/pipeline.h"

#include "ir/text.h"
#include "learn/dataset/import.h"

namespace tensorsmith::search {

feature::PerStoreOptions feature_options(const target::Device& device) {
  feature::PerStoreOptions options;
  options.cacheline_bytes = device.cacheline_bytes;
  options.gpu = device.kind() == target::DeviceKind::kGpu;
  return options;
}

namespace {

// `trace`: returns the trace of the schedule, for inputs that need it.
template <class MakeTrace>
Status extract(const QueriedTask& task, feature::ScheduleFeatures& features, const sched::Schedule& schedule,
               const learn::ModelInputs& wanted, const MakeTrace& trace, ProgramInputs& out) {
  if (wanted.summary) out.summary = feature::summarize_schedule(task.access, schedule, task.device);
  if (wanted.leaves && !out.summary) {
    TS_ASSIGN_OR_RETURN(out.leaves, features.leaves(schedule));
  }
  if (wanted.rows && out.leaves.vectors.rows > 0) {
    out.rows = out.leaves.per_store();
  } else if (wanted.rows) {
    TS_ASSIGN_OR_RETURN(out.rows, features.per_store(schedule));
  }
  if (wanted.trace && (!out.summary || wanted.trace_beside_summary)) {
    TS_ASSIGN_OR_RETURN(out.trace, trace());
  }
  return {};
}

}  // namespace

QueriedTask::QueriedTask(std::string key, std::string name, const ir::Workload& workload, double flops,
                         const target::Device& device_in)
    : QueriedTask({std::move(key), std::move(name), ir::print(workload), flops, {}}, workload, device_in) {
  device.name = learn::stored_device_name(device_in);
}

QueriedTask::QueriedTask(learn::StoredWorkload stored_in, const ir::Workload& workload,
                         const target::Device& device_in)
    : stored(std::move(stored_in)),
      device(device_in),
      access(feature::analyze_accesses(workload, stored.flops)) {
  if (stored.foreign_keys.empty()) access.workload = std::make_shared<const ir::Workload>(workload);
}

Result<std::shared_ptr<const ProgramInputs>> inputs_of(const QueriedTask& task, const ir::Workload& workload,
                                                       const sched::Trace& trace,
                                                       const learn::ModelInputs& wanted) {
  TS_ASSIGN_OR_RETURN(const auto schedule, sched::replay(workload, trace));
  auto out = std::make_shared<ProgramInputs>();
  feature::ScheduleFeatures features(feature_options(task.device));
  TS_RETURN_IF_ERROR(
      extract(task, features, schedule, wanted, [&] { return Result<sched::Trace>(trace); }, *out));
  return std::shared_ptr<const ProgramInputs>(std::move(out));
}

Result<std::shared_ptr<const ProgramInputs>> CandidateFeatures::of(const space::Candidate& candidate) {
  auto out = std::make_shared<ProgramInputs>();
  if (wanted_.point) out->point = to_point(candidate);
  if (wanted_.parts) {
    TS_RETURN_IF_ERROR(space_.check(candidate));
    space_.estimate_parts(candidate, out->parts.emplace());
    if (wanted_.only_parts()) return std::shared_ptr<const ProgramInputs>(std::move(out));
  }
  TS_RETURN_IF_ERROR(space_.to_schedule(candidate, schedule_));
  TS_RETURN_IF_ERROR(
      extract(*task_, features_, schedule_, wanted_, [&] { return space_.to_trace(candidate); }, *out));
  return std::shared_ptr<const ProgramInputs>(std::move(out));
}

record::DesignPoint to_point(const space::Candidate& candidate) {
  return {candidate.sketch, candidate.decisions};
}

space::Candidate from_point(const record::DesignPoint& point) { return {point.sketch, point.decisions}; }

}  // namespace tensorsmith::search
