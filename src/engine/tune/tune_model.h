// Tunes models: searches schedules for the tasks of all models, chooses the winners by timing them
// inside each model, compares the result end to end with the untuned model, and writes compiled
// models.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sinks.h"
#include "engine/fleet/fleet_measurer.h"
#include "engine/model/load_model.h"
#include "engine/report/speedup.h"
#include "engine/tune/schedules.h"
#include "engine/tune/source_models.h"
#include "engine/tune/warm_start.h"
#include "learn/search_model.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Phases of tune_models(), in order; the first and the last two occur once per model.
enum class TunePhase : uint8_t {
  kUntuned,  // the untuned model is compiled and timed
  kSearch,   // schedules are measured
  kCompare,  // models with the fastest schedules are compiled and timed
  kWrite,    // the chosen model is written
};

// Planned seconds of a phase when it begins, and of all later phases. 0 = not known.
struct PhasePlan {
  double seconds = 0;
  double later_seconds = 0;
};

// Callbacks of tune_models(), called on its thread.
class TuneEvents {
 public:
  virtual ~TuneEvents() = default;
  virtual void begins(TunePhase, const PhasePlan&) {}
  virtual void progress(const search::TuneProgress&) {}  // after every measurement
  virtual void compared(const Speedup&) {}               // at the end of kCompare, before kWrite
};

struct ModelToTune {
  const LoadedModel* model = nullptr;  // must outlive the run
  std::string directory;               // for the compiled model
  std::string name;                    // stored in the compiled model
};

struct TuneModelOptions {
  // The time limit is for the whole run, including writing the last model. tune_models() sets the
  // number of threads, the objective and whether winners are confirmed.
  search::TuneOptions search;
  // Whether to run the whole model, untuned and tuned, to choose between close schedules. With another
  // objective than latency, this only tells the model's times.
  bool end_to_end = true;
  learn::SearchModelOptions cost_model;  // its seed and threads are set from the other options
  // Prior knowledge: the entries of read_tune_sources(), and whether records of other tasks and
  // devices in `where.database` and the shipped records are used.
  std::vector<std::string> sources;
  bool warm_start = true;
  SeedOptions seeds;
  // The language model whose schedules are measured first and which strategies may ask for more;
  // see language_model_for().
  std::string language_model;
  // If some of the sources are models, only schedules of their tasks are taken: of the best-ranked
  // model, or of all if pool_sources is set.
  SourceRanking source_ranking = SourceRanking::kGain;
  bool pool_sources = false;
  ScheduleOptions schedules;
  Where where;
};

// Result of running the whole model untuned and tuned in turn.
struct InModel {
  Speedup whole;
  // By task, seconds of all calls during one run, each call the fastest over the runs. A task that
  // keeps its untuned schedule has the same time twice. If the objective is latency, the tuned time is
  // shorter for all other tasks, since a task that became slower goes back to its untuned schedule.
  // Infinite: not known, for example if the untuned program fails.
  std::vector<double> task_untuned, task_tuned;
};

struct TunedModel {
  search::TuneReport report;
  std::optional<InModel> in_model;  // nullopt without the end-to-end comparison
  Estimate estimate;                // for the schedules of the compiled model
  std::vector<char> kept;           // by task: whether the compiled model runs the untuned schedule
  // By task: seconds of one call with the schedule of the compiled model, measured alone; 0 = not
  // known.
  std::vector<double> alone;
  // By task: where the schedule of the compiled model comes from; nullopt if this run's search
  // found it.
  std::vector<std::optional<ProgramSource>> sources;
  std::vector<SourceScore> source_scores;  // of the models among the sources, best first
  double elapsed_seconds = 0;
  bool interrupted = false;  // the best schedules so far were compiled
};

// Searches on this machine (kUnsupported unless is_measurable(device), which includes the GPUs of
// this machine) until a limit or `cancel`, then writes each model's directory, all of it or nothing.
// Tasks shared by several models are searched once. Each model has the same weight: the search
// minimizes the sum over models of latency / untuned latency. Schedules that are not faster end to
// end than the untuned model are dropped. With another objective, each task gets the schedule of its
// lowest cost, even if it is slower. Results are in the order of the models; errors: those of
// search::Objective::parse, search::tune, compile_model, read_tune_sources, language_model_for and
// files; kUnsupported if the objective uses energy that cannot be measured; kCancelled, with no model
// written, if `cancel` came before this run had measured a schedule.
Result<std::vector<TunedModel>> tune_models(const std::vector<ModelToTune>& models,
                                            const target::Device& device, const TuneModelOptions& options,
                                            record::Database& database, const Clock& clock, LogSink& log,
                                            TuneEvents& events, const std::atomic<bool>& cancel);

}  // namespace tensorsmith::engine
