// Dispatches steps to the primitives; all steps are executed here.
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"
#include "sched/step.h"

namespace tensorsmith::sched {

namespace {

int stage_of(const Step& step) {
  return std::visit([](const auto& s) { return s.stage; }, step);
}

}  // namespace

Status apply(Schedule& schedule, const Step& step, std::span<const Step> earlier, Rewrites& rewrites) {
  Status status = std::visit(
      [&](const auto& s) -> Status {
        if constexpr (requires { primitives::apply(schedule, s, earlier); }) {
          return primitives::apply(schedule, s, earlier);
        } else if constexpr (requires { primitives::apply(schedule, s, rewrites); }) {
          return primitives::apply(schedule, s, rewrites);
        } else {
          return primitives::apply(schedule, s);
        }
      },
      step);
  if (status.ok()) return status;
  Error error = std::move(status).error();
  error.place = "step " + std::to_string(earlier.size()) + " (" + std::string(step_name(step)) + ")";
  if (const auto stage = primitives::find_stage(schedule, stage_of(step)); stage.ok())
    error.place += " stage '" + schedule.stages[*stage].op->name + "'";
  return error;
}

ScheduleBuilder::ScheduleBuilder(const ir::Workload& workload) : schedule_(Schedule::create(workload)) {}

ScheduleBuilder::ScheduleBuilder(Schedule fresh) : schedule_(std::move(fresh)) {}

Status ScheduleBuilder::apply(const Step& step) {
  Rewrites rewrites;
  TS_RETURN_IF_ERROR(sched::apply(schedule_, step, trace_.steps, rewrites));
  trace_.steps.push_back(step);
  return {};
}

Result<Schedule> replay(const ir::Workload& workload, const Trace& trace) {
  return replay(Schedule::create(workload), trace);
}

Result<Schedule> replay(Schedule fresh, const Trace& trace) {
  const std::span<const Step> steps(trace.steps);
  Rewrites rewrites;
  for (size_t i = 0; i < steps.size(); ++i)
    TS_RETURN_IF_ERROR(apply(fresh, steps[i], steps.first(i), rewrites));
  return fresh;
}

}  // namespace tensorsmith::sched
