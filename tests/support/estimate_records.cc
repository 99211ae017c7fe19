#include "support/estimate_records.h"

#include <cmath>
#include <set>

#include "ir/structural.h"
#include "ir/text.h"

namespace tensorsmith::test {

namespace {

// Keys are computed from the device before its clock and bandwidth were measured, so that other
// records of this machine have the same key.
target::Device as_probed(target::Device device) {
  if (device.base_clock_ghz > 0) {
    const double peak = device.peak_f32_gflops * device.base_clock_ghz / device.clock_ghz;
    device.peak_f32_gflops = std::round(10 * peak) / 10;  // rounded as in the printed device
    device.clock_ghz = device.base_clock_ghz;
  }
  device.memory_bandwidth_gbs = 0;
  return device;
}

}  // namespace

std::vector<record::Database::Item> records_of(const std::vector<MeasuredTask>& tasks) {
  std::vector<record::Database::Item> out;
  std::set<std::string> known;
  for (const MeasuredTask& task : tasks) {
    const auto space = space::DesignSpace::build(task.workload, task.device, {});
    if (!space.ok()) continue;
    target::Device device = task.device;
    device.name = "local";
    const std::string device_key = as_probed(device).key(), task_key = ir::structural_key(task.workload);
    if (known.insert(device_key).second) out.emplace_back(record::DeviceInfo{device_key, device});
    if (known.insert(task_key).second) {
      out.emplace_back(
          record::TaskInfo{task_key, ir::print(task.workload), task.name, ir::flop_count(task.workload)});
    }
    for (const MeasuredTask::Trial& trial : task.trials) {
      const auto candidate = MeasuredTask::candidate(*space, trial);
      if (!candidate.ok()) continue;
      const auto trace = space->to_trace(*candidate);
      if (!trace.ok()) continue;
      record::Record record;
      record.task_key = task_key;
      record.device_key = device_key;
      record.settings.threads = device.compute_units();
      record.trace = sched::print(*trace);
      record.candidate.point = record::DesignPoint{candidate->sketch, candidate->decisions};
      record.result.seconds = {trial.seconds};
      record.result.runs_per_repeat = 1;
      if (known.insert(record.key()).second) out.emplace_back(std::move(record));
    }
  }
  return out;
}

}  // namespace tensorsmith::test
