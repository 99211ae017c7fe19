// How much faster tuning made a model. All outputs that show this for a whole model (the command
// line, `--json`, the report page, the page of a running search, Python) take the numbers and the
// wording from here.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tensorsmith::graph {
struct Partition;
}
namespace tensorsmith::runtime {
struct ModelDescription;
struct TuningTimes;
}  // namespace tensorsmith::runtime
namespace tensorsmith::search {
struct TuneProgress;
}

namespace tensorsmith::engine {

// If runs differ by more than this share, other programs disturbed them.
inline constexpr double kBusySpread = 0.10;

// Measured speed-up: the whole model was run untuned and tuned in turn on this machine.
struct Speedup {
  double untuned_seconds = 0, tuned_seconds = 0;  // of one run: the lower quartile of all runs
  // Relative spread of the runs: the interquartile range over the lower quartile, of the model
  // where it is larger.
  double spread = 0;

  double ratio() const { return untuned_seconds / tuned_seconds; }
  bool busy() const { return spread > kBusySpread; }
};

// Formats a ratio as all outputs do: "1.58x".
std::string ratio_text(double ratio);
// Formats the spread: "the runs differ by 4.2 %".
std::string spread_text(const Speedup& speedup);
// A sentence that says why the speed-up is uncertain and what to do; empty unless busy().
std::string warning_of(const Speedup& speedup);

// Sum of the tasks' times, each measured alone. It is used if the whole model was not run. It is
// not a speed-up and never called one: kernels take different times inside the model, and the time
// between them is missing.
struct Estimate {
  double untuned_seconds = 0, tuned_seconds = 0;  // 0: not known

  bool known() const { return untuned_seconds > 0 && tuned_seconds > 0; }
  double ratio() const { return untuned_seconds / tuned_seconds; }
};

// Contribution of a task to the sum; infinite seconds are unknown.
struct TaskTimes {
  double calls = 1;
  double untuned_seconds = 0, tuned_seconds = 0;  // of one call
};
// If only one time of a task is known, it is used for both; a task without a known time is left
// out.
Estimate estimate_of(const std::vector<TaskTimes>& tasks);
// The estimate during a search, over all its tasks or over those of one model. It is not known
// until each task was measured or timed in the untuned model.
Estimate estimate_of(const search::TuneProgress& progress);
Estimate estimate_of(const search::TuneProgress& progress, const graph::Partition& model);

// Conversion from and to the form that compiled models store, so that later reports show the result
// of the run.
std::optional<runtime::TuningTimes> stored(const Speedup& speedup);
std::optional<runtime::TuningTimes> stored(const Estimate& estimate);
std::optional<Speedup> speedup_of(const runtime::ModelDescription& model);
Estimate estimate_of(const runtime::ModelDescription& model);

}  // namespace tensorsmith::engine
