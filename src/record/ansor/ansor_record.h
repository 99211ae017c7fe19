// Measured programs of TVM's auto-scheduler (Ansor, TenSet): one JSON line each,
//   {"i":[[workload_key, target, hardware, ...], [[], steps]], "r":[[seconds...], error_no, all_cost, time],
//   "v":"v0.6"}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sched/step.h"

namespace tensorsmith::record {

struct AnsorRecord {
  std::string task;          // its JSON text: what the steps are of, with the hardware's parameters
  std::string workload_key;  // JSON text: ["md5 or function", shape or arguments...]
  std::string target;        // "llvm -keys=cpu -mcpu=..."
  int64_t cacheline_bytes = 64;
  sched::Trace trace;
  // By step: the extent that a split names for the loop it splits; 0 for other steps and unknown extents.
  std::vector<int64_t> split_extents;
  std::vector<double> seconds;  // one a repeat
  int error_no = 0;             // 0: measured
  int64_t unix_seconds = 0;

  // A program that could not be built or run, or whose time is TVM's mark for that (1e10 seconds).
  bool failed() const;
  // A program that was written and not measured: without an error, all times 0.
  bool unmeasured() const;
  double mean_seconds() const;  // of a record that has not failed
};

// Into a record that is used again. Errors: kCorrupt for a line that does not follow the format, kUnsupported
// for steps that we do not have (tensorize, other pragmas); the place is "column N". Never crashes (fuzzed).
Status parse_ansor_record(std::string_view line, AnsorRecord& out);

// The record as TVM v0.16 writes and reads it, without the newline. Its steps are those that parsing makes.
std::string to_ansor_line(const AnsorRecord& record);

// The record's steps applied to Schedule::create's result. Besides what a step's checks refuse: kMismatch
// where a split names another extent than the workload gives that axis, so that a wrong workload does not go
// unnoticed.
Result<sched::Schedule> replay(sched::Schedule fresh, const AnsorRecord& record);

// What records name of a trace's splits: by step, the extent of a root axis of a stage that is computed in full, 0 for other
// loops and steps. kUnsupported: a step that TVM does not have, by its place; else what the steps' checks refuse.
Result<std::vector<int64_t>> split_extents(sched::Schedule fresh, const sched::Trace& trace);

}  // namespace tensorsmith::record
