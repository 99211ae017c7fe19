// From loaded models to compiled ones with searched schedules: the search over the tasks of all of them, the choice of
// winners in their place in each model, and the end-to-end comparison with the untuned model.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sinks.h"
#include "engine/load_model.h"
#include "engine/schedules.h"
#include "engine/source_models.h"
#include "engine/speedup.h"
#include "engine/warm_start.h"
#include "learn/search_model.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::engine {

// What tune_models() does, in this order; the first and the last two once a model.
enum class TunePhase : uint8_t {
  kUntuned,  // the untuned model is compiled and timed
  kSearch,   // schedules are measured
  kCompare,  // models of the fastest schedules are compiled and timed
  kWrite,    // the chosen one is written
};

// Seconds that are planned for a phase when it begins, and for those after it. 0 = not known.
struct PhasePlan {
  double seconds = 0;
  double later_seconds = 0;
};

// Told while tune_models() works, on its thread.
class TuneEvents {
 public:
  virtual ~TuneEvents() = default;
  virtual void begins(TunePhase, const PhasePlan&) {}
  virtual void progress(const search::TuneProgress&) {}  // after every measurement
  virtual void compared(const Speedup&) {}               // at the end of kCompare, before kWrite
};

struct ModelToTune {
  const LoadedModel* model = nullptr;  // outlives the run
  std::string directory;               // of the compiled model
  std::string name;                    // kept in it
};

struct TuneModelOptions {
  int64_t trials = 0;     // 0 = no limit
  double seconds = 0;     // for everything until the last model is written; 0 = no limit
  double until_gain = 0;  // see search::TuneOptions
  double epsilon = search::TuneOptions().epsilon;
  std::string strategy = search::TuneOptions().strategy;
  int batch = 16;
  uint64_t seed = 0;
  bool flush_cache = false;
  // Whether the whole model, untuned and tuned, is run to choose between close schedules.
  bool end_to_end = true;
  learn::SearchModelOptions cost_model;  // its seed and threads follow from the other options
  // What is known from elsewhere: files of records (WarmStart), and whether those that `database` has of other tasks
  // and devices count.
  std::vector<std::string> sources;
  bool warm_start = true;
  SeedOptions seeds;
  // A file; what this language model writes is measured first, and steers the strategies that ask a writer. Empty: none.
  std::string language_model;
  // Where given, only schedules of these models' tasks are taken: of the one that ranks first, or of all.
  std::vector<SourceModel> source_models;
  SourceRanking source_ranking = SourceRanking::kGain;
  bool pool_sources = false;
  ScheduleOptions schedules;
  std::vector<std::string> worker;  // the command line of measure's worker processes
  // The database's address or path, and whether its workers measure, not this machine (engine/fleet_measurer.h).
  std::string database_path;
  bool fleet = false;
};

// What running the whole model, untuned and tuned in turn, says.
struct InModel {
  Speedup whole;
  // By task, seconds of all calls during one run, each the fastest of the runs. A task that keeps its untuned schedule has
  // one time. Of all others the tuned one is the shorter: one that is not goes back to the untuned schedule. Infinite: not
  // known, as where the untuned program fails.
  std::vector<double> task_untuned, task_tuned;
};

struct TunedModel {
  search::TuneReport report;
  std::optional<InModel> in_model;  // none without the end-to-end comparison
  Estimate estimate;                // of the schedules that the compiled model runs
  std::vector<char> kept;           // by task: the compiled model runs the untuned schedule
  // By task: seconds of a call of the schedule that the compiled model runs, measured alone; 0 = not known.
  std::vector<double> alone;
  // By task: where the schedule that the compiled model runs comes from; nothing for what this run's search found.
  std::vector<std::optional<ProgramSource>> sources;
  std::vector<SourceScore> source_scores;  // of options.source_models, best first
  double elapsed_seconds = 0;
  bool interrupted = false;  // the best so far is compiled
};

// Searches on this machine (kUnsupported for a device that is not local) until a limit or `cancel`, then writes the
// directory of each model, all of it or nothing. Tasks that models share are searched once. Of several models each counts
// the same: the search minimizes the sum over models of latency / untuned latency. What is not faster than the untuned
// model end to end is not kept. Results in the order of the models; errors: those of search::tune, of compile_model and of
// files.
Result<std::vector<TunedModel>> tune_models(const std::vector<ModelToTune>& models,
                                            const target::Device& device, const TuneModelOptions& options,
                                            record::Database& database, const Clock& clock, LogSink& log,
                                            TuneEvents& events, const std::atomic<bool>& cancel);

}  // namespace tensorsmith::engine
