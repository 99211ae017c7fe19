#include "support/estimate_measurements.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "ir/text.h"

namespace tensorsmith::test {

Result<space::Candidate> MeasuredTask::candidate(const space::DesignSpace& space, const Trial& trial) {
  for (size_t k = 0; k < space.num_sketches(); ++k) {
    if (space.describe(static_cast<int>(k)) != trial.sketch) continue;
    space::Candidate c;
    c.sketch = static_cast<int>(k);
    c.decisions = trial.decisions;
    TS_RETURN_IF_ERROR(space.check(c));
    return c;
  }
  return Error{ErrorCode::kNotFound, "measurements", "no sketch '" + trial.sketch + "'"};
}

Result<std::vector<MeasuredTask>> read_measurements(const std::string& path) {
  std::ifstream in(path);
  if (!in) return Error{ErrorCode::kNotFound, path, "cannot be read"};
  std::map<std::string, target::Device> devices;
  std::map<std::string, ir::Workload> workloads;
  std::vector<MeasuredTask> result;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string place = path + ":" + std::to_string(++number);
    const auto json = parse_json<nlohmann::json>(line);
    const std::string type = json.is_object() ? json.value("type", "") : "";
    if (type == "device") {
      TS_ASSIGN_OR_RETURN(devices[json.at("id")], target::parse_device(json.at("device").dump(), place));
    } else if (type == "task") {
      TS_ASSIGN_OR_RETURN(workloads[json.at("name")],
                          ir::parse_workload(json.at("workload").get<std::string>()));
    } else if (type == "trials") {
      MeasuredTask task;
      task.device_id = json.at("device");
      task.name = json.at("task");
      if (!devices.contains(task.device_id) || !workloads.contains(task.name))
        return Error{ErrorCode::kCorrupt, place, "no such device or task before it"};
      task.device = devices[task.device_id];
      task.workload = workloads[task.name];
      const std::vector<std::string> sketches = json.at("sketches");
      for (const auto& trial : json.at("trials"))
        task.trials.push_back({sketches.at(trial.at(0)), trial.at(1), 1e-6 * trial.at(2).get<double>()});
      result.push_back(std::move(task));
    } else {
      return Error{ErrorCode::kCorrupt, place, "neither a device nor a task nor trials"};
    }
  }
  return result;
}

double rank_correlation(const std::vector<double>& estimates, const std::vector<double>& seconds) {
  double agree = 0, pairs = 0;
  for (size_t i = 0; i < seconds.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      if (seconds[i] == seconds[j]) continue;
      pairs += 1;
      const double both = (estimates[i] - estimates[j]) * (seconds[i] - seconds[j]);
      agree += both > 0 ? 1 : both < 0 ? -1 : 0;
    }
  return pairs > 0 ? agree / pairs : 0;
}

}  // namespace tensorsmith::test
