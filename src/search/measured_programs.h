// The programs of one task that were measured in this run or an earlier one, and what follows from
// their times. The best program is that of the lowest cost by the run's objective; of programs of equal cost,
// the fastest.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "record/record.h"
#include "search/objective.h"
#include "search/pipeline.h"
#include "search/strategy.h"

namespace tensorsmith::search {

// A program proposed for measurement.
struct Proposal {
  sched::Trace trace;
  uint64_t hash = 0;  // of the trace
  record::Reason reason = record::Reason::kUnstated;
  std::string_view strategy;  // empty: not proposed by a strategy
  std::optional<space::Candidate> candidate;
  std::shared_ptr<const ProgramInputs> inputs;  // null: not needed so far
};

// A program that ran.
struct RunProgram {
  uint64_t hash = 0;  // of the trace
  sched::Trace trace;
  double seconds = 0;
  bool is_default = false;
  bool verified = false;                   // output compared by this run
  size_t candidate = 0, row = 0;           // index in candidates() and rows() plus 1; 0 = none
  std::optional<double> disturbance = {};  // while `seconds` was measured (record/disturbance.h)
  double bytes = 0;                        // of its temporaries; 0 if the objective does not use them
  double joules = 0;                       // NaN if they were not measured
  double cost = 0;
};

// A measured program, as training data.
struct TrainingRow {
  std::shared_ptr<const ProgramInputs> inputs;
  double seconds = 0;                         // +inf: failed
  double weight = 1;                          // record::trust of the measurement
  std::optional<space::Candidate> candidate;  // none for a program from outside of the task's space
  double log_cost = 0;                        // Objective::log_cost of what was measured; +inf: failed
};

class MeasuredPrograms {
 public:
  // default_hash: hash of the untuned schedule's trace. objective: must outlive this object.
  MeasuredPrograms(uint64_t default_hash, const Objective& objective)
      : default_hash_(default_hash), objective_(objective) {}

  // Takes a result. `verified`: the measurer has just compared the output; false for results from
  // the database. `inputs`: null if they could not be computed. `bytes`: see RunProgram.
  void take(const Proposal& proposal, const record::MeasureResult& result, bool verified,
            std::shared_ptr<const ProgramInputs> inputs, double bytes);
  void finish_round() { history_.push_back(judged_seconds()); }

  // Returns the best programs, at most `count`: of those that this run verified, or of all if it
  // verified none.
  std::vector<RunProgram> best(size_t count) const;
  // Returns the untuned program; null if it did not run.
  const RunProgram* untuned() const;
  // Returns the fastest program that has training data; null if there is none.
  const RunProgram* fastest_with_inputs() const;
  // Returns the best measured candidate; null if none has run.
  const MeasuredCandidate* best_candidate() const;

  // Returns the programs that lost only by doubtful readings: without other programs on the machine they
  // may cost less than `cost`. The most promising ones come first, at most `count`.
  std::vector<RunProgram> doubtful_losers(double cost, size_t count) const;

  // Returns the programs known only from the database that this run should verify before they
  // count: the default and the best of all.
  std::vector<RunProgram> doubtful() const;
  // Replaces the result of a program from the database by a second measurement.
  void verify(uint64_t hash, const record::MeasureResult& result);
  // Drops programs that are not verified and better than all verified ones.
  void drop_doubtful();

  bool is_default(uint64_t hash) const { return hash == default_hash_; }
  bool default_known() const { return default_result_.has_value(); }
  double default_seconds() const { return default_seconds_; }  // +inf: it did not run
  const std::optional<record::MeasureResult>& default_result() const { return default_result_; }
  double best_seconds() const { return best_seconds_; }  // of the best program; +inf: no program ran
  double default_cost() const { return default_cost_; }  // +inf: it did not run
  double best_cost() const { return best_cost_; }        // +inf: no program ran
  // Returns the seconds of the untuned program times the factor by which the best program lowers the
  // cost: best_seconds() if the objective is latency. The scheduler, which compares tasks by their time,
  // uses it.
  double judged_seconds() const;
  // Returns the joules of a second, by the programs whose energy was measured; 1 if there are none.
  double watts() const;
  // Returns Objective::log_cost of the best program; +inf if no program ran.
  double best_log_cost() const { return best_log_cost_; }
  const Objective& objective() const { return objective_; }
  // judged_seconds() after each round.
  const std::vector<double>& history() const { return history_; }
  // All measured candidates, the failed ones included.
  const std::vector<MeasuredCandidate>& candidates() const { return candidates_; }
  const std::vector<TrainingRow>& rows() const { return rows_; }
  int64_t trials() const { return trials_; }
  int64_t failures() const { return failures_; }
  // Returns text like "10 wrong_output, 2 crash; the first: REASON".
  std::string failure_counts() const;

 private:
  void count_failure(const record::MeasureResult& result);
  double log_cost_of(const RunProgram& program) const;
  // Takes the seconds of a program as those of the best one if it is better.
  void offer(const RunProgram& program);
  void find_best();

  uint64_t default_hash_;
  const Objective& objective_;
  std::vector<RunProgram> ran_;
  std::vector<MeasuredCandidate> candidates_;
  std::vector<TrainingRow> rows_;
  std::vector<double> history_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  double best_cost_ = std::numeric_limits<double>::infinity();
  double best_log_cost_ = std::numeric_limits<double>::infinity();
  double default_seconds_ = std::numeric_limits<double>::infinity();
  double default_cost_ = std::numeric_limits<double>::infinity();
  std::optional<record::MeasureResult> default_result_;
  int64_t trials_ = 0, failures_ = 0;
  std::map<record::Outcome, int64_t> failures_by_outcome_;
  std::string first_failure_;
};

}  // namespace tensorsmith::search
