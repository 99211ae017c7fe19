// One task during a tuning run: proposes programs by a strategy and takes their results.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "search/candidate_scorer.h"
#include "search/measured_programs.h"
#include "search/prepared_task.h"
#include "search/strategy.h"
#include "search/tuner.h"

namespace tensorsmith::search {

// Contents and limits of a proposal.
struct ProposalRequest {
  size_t count = 0;                           // most new programs
  std::span<const ProposedCandidate> wanted;  // candidates that come first if they are new
  ScoringRequest scoring;
  size_t score_budget = 512;                // most candidates that the model may judge
  double progress = 0;                      // see StrategyView
  double epsilon = StrategyView().epsilon;  // see StrategyView
};

struct TaskOptions {
  const StrategyKind& strategy;
  uint64_t seed = 0;
  learn::ModelInputs inputs;  // inputs that the run's cost model reads
  const Objective& objective;
};

// Returns the description of the proposal for its record.
record::CandidateOrigin recorded(const Proposal& proposal);

class TaskState {
 public:
  // task, options.strategy and options.objective: must outlive this object.
  TaskState(const TuneTask& task, const TaskOptions& options);

  const PreparedTask& task() const { return *tuned_.task; }
  const MeasuredPrograms& programs() const { return programs_; }
  MeasuredPrograms& programs() { return programs_; }

  Proposal default_proposal() const;
  // Plain loops: the fallback if the default cannot be built or run.
  Proposal plain_proposal() const;
  // Returns an empty list if the space is exhausted.
  std::vector<Proposal> propose(const ProposalRequest& request, ThreadPool& pool);
  // Returns the scores that the strategy would see: higher is better.
  std::vector<float> score(std::span<const space::Candidate> candidates, const ScoringRequest& request,
                           ThreadPool& pool) {
    return scorer_.score(candidates, request, programs_, pool);
  }

  // Takes a result, either from the measurer, which has just compared the output, or from the
  // database.
  void take(const Proposal& proposal, const record::MeasureResult& result, bool from_database);
  // Takes a record of an earlier run. `trace`: the record's trace, parsed.
  void take_record(const record::Record& record, sched::Trace trace);
  bool is_known(uint64_t hash) const { return known_traces_.count(hash) > 0; }

  // Returns row r of the measured programs in the form that the cost model learns from.
  learn::MeasuredProgram measured_program(size_t r) const {
    const TrainingRow& row = programs_.rows()[r];
    return {row.inputs->query(task().queried()), row.seconds, row.weight};
  }
  bool exhausted() const { return exhausted_; }
  // The error by which the model could not judge candidates in the last propose(); the drafts ranked
  // them instead.
  const std::optional<Error>& model_error() const { return scorer_.model_error(); }
  // The error of the task's writer in the last propose().
  const std::optional<Error>& writer_error() const { return writer_error_; }
  // Number of candidates that the model judged in the last propose().
  size_t judged() const { return scorer_.judged(); }

 private:
  const TuneTask& tuned_;
  const StrategyKind& kind_;
  std::unique_ptr<Strategy> strategy_;
  Rng rng_;
  CandidateScorer scorer_;
  MeasuredPrograms programs_;
  std::unordered_set<uint64_t> known_candidates_, known_traces_;  // hashes
  bool exhausted_ = false;
  std::optional<Error> writer_error_;
};

}  // namespace tensorsmith::search
