// Measured programs of TVM's auto-scheduler (Ansor, TenSet), one JSON line each:
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
  std::string task;  // its JSON text: the workload and target of the steps, with the hardware parameters
  std::string workload_key;  // JSON text: ["md5 or function", shape or arguments...]
  std::string target;        // "llvm -keys=cpu -mcpu=..."
  int64_t cacheline_bytes = 64;
  sched::Trace trace;
  // By step: the extent that the record states for the loop that a split divides; 0 for other steps
  // and unknown extents.
  std::vector<int64_t> split_extents;
  std::vector<double> seconds;  // one per repeat
  int error_no = 0;             // 0: measured successfully
  int64_t unix_seconds = 0;

  // True for a program that could not be built or run, or whose time is TVM's failure mark (1e10
  // seconds).
  bool failed() const;
  // True for a program that was written but not measured: no error, and all times are 0.
  bool unmeasured() const;
  double mean_seconds() const;  // must not be called for a failed record
};

// Parses a line into a record, reusing its memory. Errors: kCorrupt for a line that does not follow
// the format, kUnsupported for unsupported steps (tensorize, other pragmas); the place is "column
// N". Never crashes (fuzzed).
Status parse_ansor_record(std::string_view line, AnsorRecord& out);

// Returns the record in the format of TVM v0.16, without the newline. Its steps must be of the
// kinds that parsing makes.
std::string to_ansor_line(const AnsorRecord& record);

// Applies the record's steps to the result of Schedule::create(). Errors: those of the steps'
// checks, and kMismatch if a split states another extent than the workload has for that axis, so
// that a wrong workload is detected. kCorrupt: a factor of a split is larger than its loop.
Result<sched::Schedule> replay(sched::Schedule fresh, const AnsorRecord& record);

// The steps of a record. split_extents: by step, the extent of a root axis of a stage that is computed at
// root, 0 for other loops and steps.
struct AnsorSteps {
  sched::Trace trace;
  std::vector<int64_t> split_extents;
};
// Returns the steps that a record of our trace states. These are its own without the packed layouts of
// constants, which are no part of TVM's records: TVM packs constants by itself. kUnsupported, with the same
// reason for all records of a kind, for a step that TVM lacks and for a split that replay() would refuse;
// else the errors of the steps' checks.
Result<AnsorSteps> steps_for_ansor(sched::Schedule fresh, const sched::Trace& trace);

}  // namespace tensorsmith::record
