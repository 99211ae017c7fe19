// How much faster tuning made a model. Whatever shows that of a whole model (the command line, `--json`, the report page,
// the page of a run that goes on, Python) takes the numbers and the words from here.
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

// Runs that differ by more than this share were disturbed by other programs.
inline constexpr double kBusySpread = 0.10;

// The speed-up: the whole model was run untuned and tuned in turn on this machine.
struct Speedup {
  double untuned_seconds = 0, tuned_seconds = 0;  // of one run, the lower quartile of all runs
  // How much the runs of one model differ: the distance of their quartiles over the lower quartile. Of the two models the
  // larger one counts.
  double spread = 0;

  double ratio() const { return untuned_seconds / tuned_seconds; }
  bool busy() const { return spread > kBusySpread; }
};

// "1.58x", in all text.
std::string ratio_text(double ratio);
// "the runs differ by 4.2 %".
std::string spread_text(const Speedup& speedup);
// A sentence that says why the figure is uncertain and what to do; empty unless the machine was busy.
std::string warning_of(const Speedup& speedup);

// The sum of the tasks' times, each measured alone. It stands in where the whole model was not run. It is no speed-up and is
// never called one: kernels take other times in the model, and the time between them is missing.
struct Estimate {
  double untuned_seconds = 0, tuned_seconds = 0;  // 0: not known

  bool known() const { return untuned_seconds > 0 && tuned_seconds > 0; }
  double ratio() const { return untuned_seconds / tuned_seconds; }
};

// A task's part of the sum; infinite where it is not known.
struct TaskTimes {
  double calls = 1;
  double untuned_seconds = 0, tuned_seconds = 0;  // of a call
};
// A task of which one time is known counts with it twice; a task of which none is known is left out.
Estimate estimate_of(const std::vector<TaskTimes>& tasks);
// The estimate during a search, over all its tasks or over those of one model. It is not known until each task was measured
// or timed in the untuned model.
Estimate estimate_of(const search::TuneProgress& progress);
Estimate estimate_of(const search::TuneProgress& progress, const graph::Partition& model);

// As compiled models keep both, so that a later report shows what the run showed.
std::optional<runtime::TuningTimes> stored(const Speedup& speedup);
std::optional<runtime::TuningTimes> stored(const Estimate& estimate);
std::optional<Speedup> speedup_of(const runtime::ModelDescription& model);
Estimate estimate_of(const runtime::ModelDescription& model);

}  // namespace tensorsmith::engine
