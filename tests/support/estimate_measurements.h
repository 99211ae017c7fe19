// Measured candidates to compare the design space's estimate with:
// tests/data/estimate/measurements.jsonl, made by bench_estimate. One JSON object per line:
//
//   {"type": "device", "id": TEXT, "device": OBJECT as in a device file}
//   {"type": "task", "name": TEXT, "workload": TEXT as ir::parse_workload takes it}
//   {"type": "trials", "device": ID, "task": NAME, "sketches": [TEXT], "trials": [[SKETCH, [DECISION], US]]}
//
// US: microseconds of a run with warm caches, the best of several.
#pragma once

#include <string>
#include <vector>

#include "ir/workload.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::test {

struct MeasuredTask {
  std::string device_id, name;
  target::Device device;
  ir::Workload workload;
  struct Trial {
    std::string sketch;  // as printed by DesignSpace::describe
    std::vector<int64_t> decisions;
    double seconds = 0;
  };
  std::vector<Trial> trials;

  // Returns the trial as a candidate of the space; kNotFound if the space does not have it.
  static Result<space::Candidate> candidate(const space::DesignSpace& space, const Trial& trial);
};

// Errors: kNotFound, kCorrupt with the line.
Result<std::vector<MeasuredTask>> read_measurements(const std::string& path);

// Returns the share of pairs of different times that the estimates order as the times do, from -1
// (all reversed) to 1 (Kendall's tau, where equal estimates count as half).
double rank_correlation(const std::vector<double>& estimates, const std::vector<double>& seconds);

}  // namespace tensorsmith::test
