// State of one task during a tuning run: its space, its measurements, and the proposals of its
// strategy.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "search/pipeline.h"
#include "search/strategy.h"
#include "search/tuner.h"

namespace tensorsmith::search {

// A measured program, as training data.
struct TrainingRow {
  std::shared_ptr<const ProgramInputs> inputs;
  double seconds = 0;
};

// A program proposed for measurement.
struct Proposal {
  sched::Trace trace;
  std::string text;  // text of the trace
  record::Reason reason = record::Reason::kUnstated;
  std::string_view strategy;  // empty: not proposed by a strategy
  std::optional<space::Candidate> candidate;
  std::shared_ptr<const ProgramInputs> inputs;  // null: not needed so far
};

// Contents and limits of a proposal.
struct ProposalRequest {
  size_t count = 0;                           // most new programs
  std::span<const ProposedCandidate> wanted;  // candidates that come first if they are new
  const learn::CostModel* model = nullptr;    // null: only drafts are used
  size_t score_budget = 512;                  // most candidates that the model may judge
  // When true, only drafts are used from then on; called by several threads.
  std::function<bool()> out_of_time;
  double progress = 0;                      // see StrategyView
  double epsilon = StrategyView().epsilon;  // see StrategyView
};

struct TaskOptions {
  const StrategyKind& strategy;
  uint64_t seed = 0;
  learn::ModelInputs inputs;  // inputs that the run's cost model reads
};

// Returns the description of the proposal for its record.
record::Candidate recorded(const Proposal& proposal);

class TaskState {
 public:
  // device: must outlive this object.
  TaskState(const TuneTask& task, std::shared_ptr<const SearchSpace> space, const target::Device& device,
            const TaskOptions& options);

  const TuneTask& task() const { return *task_; }
  const SearchSpace& space() const { return *space_; }

  // The untuned schedule.
  Proposal default_proposal() const;
  // Plain loops: the fallback if the default cannot be built or run.
  Proposal plain_proposal() const;
  // Returns an empty list if the space is exhausted.
  std::vector<Proposal> propose(const ProposalRequest& request, ThreadPool& pool);
  // Returns the scores that the strategy would see: higher is faster.
  std::vector<float> judge(std::span<const space::Candidate> candidates, const ProposalRequest& request,
                           ThreadPool& pool) {
    return score(candidates, request, pool);
  }
  // Returns the fastest measured candidate; null if none has run.
  const MeasuredCandidate* best_candidate() const;

  // Takes a result, either from the measurer, which has just compared the output, or from the
  // database.
  void take(const Proposal& proposal, const record::MeasureResult& result, bool from_database);
  // Takes a record of an earlier run; a trace that cannot be parsed is ignored.
  void take_record(const record::Record& record);
  bool known_trace(const std::string& text) const { return known_traces_.count(text) > 0; }
  bool is_default(const std::string& text) const { return text == default_text_; }
  void finish_round();

  // A program that ran.
  struct Result {
    std::string text;
    sched::Trace trace;
    double seconds = 0;
    bool is_default = false;
    bool verified = false;         // output compared by this run
    size_t measured = 0, row = 0;  // index in measured_ and rows_ plus 1; 0 = none
  };
  // Returns the fastest programs, at most `count`: of those that this run verified, or of all if it
  // verified none.
  std::vector<Result> fastest(size_t count) const;

  // Returns the programs known only from the database that this run should verify before they
  // count: the default and the fastest of all.
  std::vector<Result> doubtful() const;
  // Replaces the result of a program from the database by a second measurement.
  void verify(const std::string& text, const record::MeasureResult& result);
  // Drops programs that are not verified and faster than all verified ones.
  void drop_doubtful();

  double best_seconds() const { return best_seconds_; }
  double default_seconds() const { return default_seconds_; }
  const std::optional<record::MeasureResult>& default_result() const { return default_result_; }
  bool default_known() const { return default_known_; }
  const std::vector<double>& history() const { return history_; }
  const std::vector<TrainingRow>& rows() const { return rows_; }
  // Returns row r in the form that the cost model learns from.
  learn::MeasuredProgram measured_program(size_t r) const {
    return {rows_[r].inputs->query(*queried_), rows_[r].seconds};
  }
  bool exhausted() const { return exhausted_; }
  // The error by which the model could not judge candidates in the last propose(); the drafts
  // ranked them instead.
  const std::optional<Error>& model_error() const { return model_error_; }
  // The error of the task's writer in the last propose().
  const std::optional<Error>& writer_error() const { return writer_error_; }
  // Number of candidates that the model judged in the last propose().
  size_t judged() const { return judged_; }
  int64_t trials() const { return trials_; }
  int64_t failures() const { return failures_; }
  // Returns text like "10 wrong_output, 2 crash; the first: REASON".
  std::string failure_counts() const;

 private:
  // Returns minus the logarithm of the estimated seconds, corrected by the ratio of measurements to
  // estimates of the candidate's sketch so far; -inf for a candidate that cannot be built.
  double draft(const space::Candidate& candidate) const;
  std::vector<float> score(std::span<const space::Candidate> candidates, const ProposalRequest& request,
                           ThreadPool& pool);
  // Prediction of the model for each candidate: 0 seconds if the draft is not finite or the
  // candidate cannot be built, nothing if there was no time. An error of the model is the error of
  // the whole call.
  using Predictions = std::vector<std::optional<learn::Prediction>>;
  tensorsmith::Result<Predictions> predict(std::span<const space::Candidate> candidates,
                                           std::span<const float> drafts, const ProposalRequest& request,
                                           ThreadPool& pool);
  // Returns the factor on the seconds of a model that only ranks, so that its prediction for the
  // best program equals the measured time. 0: no program ran, or the model predicts that the best
  // one cannot run.
  tensorsmith::Result<double> scale_of(const learn::CostModel& model) const;
  // Variance of log(measured / estimated seconds) within the task.
  double draft_variance() const;

  std::unique_ptr<InputsOfCandidates> take_extractor();
  void give_back(std::unique_ptr<InputsOfCandidates> extractor);
  tensorsmith::Result<std::shared_ptr<const ProgramInputs>> make_inputs(const Proposal& proposal);
  void count_failure(const record::MeasureResult& result);

  const TuneTask* task_;
  std::shared_ptr<const SearchSpace> space_;
  std::string_view strategy_name_;
  bool uses_draft_;
  std::unique_ptr<Strategy> strategy_;
  Rng rng_;
  learn::ModelInputs inputs_;
  std::shared_ptr<const QueriedTask> queried_;
  sched::Trace default_trace_;
  std::string default_text_;

  std::vector<MeasuredCandidate> measured_;
  struct Residuals {
    double sum = 0, squares = 0, count = 0;  // of log(measured / estimated)
  };
  std::vector<Residuals> residuals_;  // by sketch
  Residuals all_residuals_;
  std::unordered_set<uint64_t> known_candidates_;
  std::unordered_set<std::string> known_traces_;
  std::vector<Result> results_;  // of programs that ran
  std::vector<TrainingRow> rows_;
  // One extractor for each thread that scores.
  struct Extractors {
    std::mutex mutex;
    std::vector<std::unique_ptr<InputsOfCandidates>> idle;
  };
  std::unique_ptr<Extractors> extractors_ = std::make_unique<Extractors>();
  // Inputs of the candidates scored during one proposal, by the candidate's hash.
  std::unordered_map<uint64_t, std::shared_ptr<const ProgramInputs>> scored_;
  std::vector<double> history_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  double default_seconds_ = std::numeric_limits<double>::infinity();
  bool default_known_ = false, exhausted_ = false;
  size_t judged_ = 0;
  std::optional<Error> model_error_;
  std::optional<Error> writer_error_;
  std::optional<record::MeasureResult> default_result_;
  int64_t trials_ = 0, failures_ = 0;
  std::map<record::Outcome, int64_t> failures_by_outcome_;
  std::string first_failure_;
};

}  // namespace tensorsmith::search
