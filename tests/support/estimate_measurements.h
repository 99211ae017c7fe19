// Measured candidates to hold the design space's estimate against: tests/data/estimate/measurements.jsonl, made
// by bench_estimate. One JSON object a line:
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
    std::string sketch;  // as DesignSpace::describe says it
    std::vector<int64_t> decisions;
    double seconds = 0;
  };
  std::vector<Trial> trials;

  // The trial as a candidate of the space; kNotFound where it has none such.
  static Result<space::Candidate> candidate(const space::DesignSpace& space, const Trial& trial);
};

// Errors: kNotFound, kCorrupt with the line.
Result<std::vector<MeasuredTask>> read_measurements(const std::string& path);

// The share of pairs of different times that the estimates order as the times do, from -1 (all the other way)
// to 1 (Kendall's tau, with estimates that are equal counted as half).
double rank_correlation(const std::vector<double>& estimates, const std::vector<double>& seconds);

}  // namespace tensorsmith::test
