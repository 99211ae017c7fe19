// One task during a tuning run: its space, what was measured, and the proposals of its strategy.
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

// A program that was measured, as training data.
struct TrainingRow {
  std::shared_ptr<const ProgramInputs> inputs;
  double seconds = 0;
};

// A program chosen for measurement.
struct Proposal {
  sched::Trace trace;
  std::string text;  // of the trace
  record::Reason reason = record::Reason::kUnstated;
  std::string_view strategy;  // empty: none proposed it
  std::optional<space::Candidate> candidate;
  std::shared_ptr<const ProgramInputs> inputs;  // may be null: not needed so far
};

// What a proposal is to hold and may cost.
struct ProposalRequest {
  size_t count = 0;                           // new programs, at most
  std::span<const ProposedCandidate> wanted;  // candidates that come first where they are new
  const learn::CostModel* model = nullptr;    // null: drafts alone
  size_t score_budget = 512;                  // candidates that the model may judge
  std::function<bool()> out_of_time;          // from then on drafts judge alone; asked from several threads
  double progress = 0;                        // see StrategyView
  double epsilon = StrategyView().epsilon;    // see there
};

struct TaskOptions {
  const StrategyKind& strategy;
  uint64_t seed = 0;
  learn::ModelInputs inputs;  // what the run's cost model reads
};

// What its record says of it.
record::Candidate recorded(const Proposal& proposal);

class TaskState {
 public:
  // device: outlives this object.
  TaskState(const TuneTask& task, std::shared_ptr<const SearchSpace> space, const target::Device& device,
            const TaskOptions& options);

  const TuneTask& task() const { return *task_; }
  const SearchSpace& space() const { return *space_; }

  // The untuned schedule.
  Proposal default_proposal() const;
  // Plain loops: what is left if the default cannot be built or run.
  Proposal plain_proposal() const;
  // None if the space is exhausted.
  std::vector<Proposal> propose(const ProposalRequest& request, ThreadPool& pool);
  // As the strategy would score them: higher is faster.
  std::vector<float> judge(std::span<const space::Candidate> candidates, const ProposalRequest& request,
                           ThreadPool& pool) {
    return score(candidates, request, pool);
  }
  // The fastest one of those measured; null before any ran.
  const MeasuredCandidate* best_candidate() const;

  // Takes a result from the measurer, whose output was compared just now, or one from the database.
  void take(const Proposal& proposal, const record::MeasureResult& result, bool from_database);
  // A record of an earlier run; traces that do not parse are ignored.
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
    bool verified = false;         // by this run
    size_t measured = 0, row = 0;  // places in measured_ and rows_, counted from 1; 0 = none
  };
  // The fastest first, at most count: of those that this run verified, or of all if it verified none.
  std::vector<Result> fastest(size_t count) const;

  // What the database claims and this run should see before it counts: the default, and the fastest of all.
  std::vector<Result> doubtful() const;
  // A second measurement of a program from the database replaces the first.
  void verify(const std::string& text, const record::MeasureResult& result);
  // Forgets what is still doubtful, and faster than anything verified.
  void drop_doubtful();

  double best_seconds() const { return best_seconds_; }
  double default_seconds() const { return default_seconds_; }
  const std::optional<record::MeasureResult>& default_result() const { return default_result_; }
  bool default_known() const { return default_known_; }
  const std::vector<double>& history() const { return history_; }
  const std::vector<TrainingRow>& rows() const { return rows_; }
  // What is known of row r, for the cost model.
  learn::MeasuredProgram measured_program(size_t r) const {
    return {rows_[r].inputs->query(workload_, named_device_), rows_[r].seconds};
  }
  bool exhausted() const { return exhausted_; }
  // Why the model could not judge candidates of the last propose(), which the drafts ranked instead.
  const std::optional<Error>& model_error() const { return model_error_; }
  // What the task's writer failed with in the last propose().
  const std::optional<Error>& writer_error() const { return writer_error_; }
  // Candidates that the model judged for the last propose().
  size_t judged() const { return judged_; }
  int64_t trials() const { return trials_; }
  int64_t failures() const { return failures_; }
  // "10 wrong_output, 2 crash; the first: REASON".
  std::string failure_counts() const;

 private:
  // Minus the logarithm of the estimated seconds, corrected by how the estimates of the candidate's sketch
  // compared with measurements so far; -inf for what cannot be built.
  double draft(const space::Candidate& candidate) const;
  std::vector<float> score(std::span<const space::Candidate> candidates, const ProposalRequest& request,
                           ThreadPool& pool);
  // By candidate: what the model says; 0 where the draft is not finite or the candidate cannot be built,
  // nothing where there was no time. The model's error fails all of them.
  using Predictions = std::vector<std::optional<learn::Prediction>>;
  tensorsmith::Result<Predictions> predict(std::span<const space::Candidate> candidates,
                                           std::span<const float> drafts, const ProposalRequest& request,
                                           ThreadPool& pool);
  // Seconds by which a model that only ranks has to be multiplied: its opinion of the best program is that
  // one's time. 0: no program ran, or it says that the best one cannot run.
  tensorsmith::Result<double> scale_of(const learn::CostModel& model) const;
  // Of the logarithm of measured over estimated seconds, within the task.
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
  feature::PerStoreOptions feature_options_;
  learn::ModelInputs inputs_;
  // As cost models know them.
  learn::StoredWorkload workload_;
  target::Device named_device_;
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
  std::vector<Result> results_;  // successful ones
  std::vector<TrainingRow> rows_;
  // One for each thread that scores.
  struct Extractors {
    std::mutex mutex;
    std::vector<std::unique_ptr<InputsOfCandidates>> idle;
  };
  std::unique_ptr<Extractors> extractors_ = std::make_unique<Extractors>();
  // Of what was scored during one proposal, by the candidate's hash.
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
