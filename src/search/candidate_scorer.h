// Scores the candidates of a task: the design space's estimate, corrected by the measurements of the
// task, and a cost model's predictions, weighted against each other. Both tell the latency; the run's
// objective makes a cost of it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "learn/cost_model.h"
#include "search/batch_choice.h"
#include "search/measured_programs.h"
#include "search/prepared_task.h"

namespace tensorsmith::search {

// Standard deviation of log(measured / estimated seconds) within a task, assumed before anything of
// the task is measured.
inline constexpr double kDraftSigma = 0.5;
// Returns the weight, in [0, 1], of a cost model's prediction against the estimate. Both estimate
// the logarithm of a program's seconds, so each has the weight of its precision (1 / variance). A model that
// corrects the estimate replaces it.
inline double model_weight(double draft_variance, double model_sigma, bool corrects_estimate) {
  return corrects_estimate ? 1 : draft_variance / (draft_variance + model_sigma * model_sigma);
}

// Corrects the estimates of a task's candidates by the ratio of measured to estimated seconds.
class DraftCorrection {
 public:
  explicit DraftCorrection(size_t sketches) : of_sketch_(sketches) {}

  // Adds a measurement of a candidate of this sketch. A failed program counts as much slower than
  // its estimate. A disturbed time weighs less (record::trust).
  void add(int sketch, double estimated_seconds, const record::MeasureResult& result);
  // Returns log(measured / estimated seconds) that is expected for candidates of this sketch.
  double of(int sketch) const;
  // Returns the variance of log(measured / estimated seconds) within the task.
  double variance() const;
  // Returns the variance that remains within structures, whose means of() corrects.
  double variance_within() const;

 private:
  struct Sums {
    double sum = 0, squares = 0, count = 0;  // of log(measured / estimated), with weights
  };
  std::vector<Sums> of_sketch_;
  Sums all_;
};

// The cost model of a round and the limit of its time.
struct ScoringRequest {
  const learn::CostModel* model = nullptr;  // null: only drafts are used
  // Returns true when the time is up: the remaining candidates get drafts only. May be empty; several
  // threads call it.
  std::function<bool()> out_of_time;
};

class CandidateScorer {
 public:
  // task: must outlive this object. uses_draft: whether the estimate ranks candidates. inputs: the
  // inputs that the run's cost model reads. objective: must outlive this object.
  CandidateScorer(const PreparedTask& task, bool uses_draft, const learn::ModelInputs& inputs,
                  const Objective& objective)
      : task_(task),
        uses_draft_(uses_draft),
        inputs_(inputs),
        compared_inputs_(inputs),
        objective_(objective),
        correction_(task.space().num_sketches()) {
    // The parts of an estimate do not tell programs apart whose estimates err for different reasons.
    if (inputs.only_parts()) compared_inputs_.rows = true;
  }

  // Returns minus the logarithm of the cost (Objective::log_cost) by the estimated seconds after correction;
  // -inf for a candidate that cannot be built. watts: MeasuredPrograms::watts; the energy is believed to be
  // watts * seconds.
  double draft(const space::Candidate& candidate, double watts) const;
  // Returns a score of each candidate: higher is better, -inf for one that cannot be built. If the
  // model fails, its error becomes model_error() and the drafts are the scores.
  std::vector<float> score(std::span<const space::Candidate> candidates, const ScoringRequest& request,
                           const MeasuredPrograms& programs, ThreadPool& pool);
  // Chooses a batch among candidates that were scored since begin_proposal(): returns at most `count` of
  // their indices, best choice first (search/batch_choice.h). If the run's model reads no features, and
  // before the first measurement, these are the candidates with the highest scores. Candidates whose
  // features are not known when the time is up are left out.
  std::vector<size_t> choose(std::span<const ScoredCandidate> candidates, size_t count,
                             const ScoringRequest& request, const MeasuredPrograms& programs,
                             ThreadPool& pool);
  // Whether choose() can do more than follow the scores: it knows features by store. A summary replaces
  // leaves.
  bool knows_features() const {
    return compared_inputs_.rows || (compared_inputs_.leaves && !compared_inputs_.summary);
  }
  // Adds a measurement to the correction of the estimate.
  void take(const space::Candidate& candidate, const record::MeasureResult& result);

  // Forgets model_error(), judged() and the inputs of scored candidates.
  void begin_proposal();
  // Returns the inputs of a candidate that was scored since forget_inputs() or begin_proposal(); null if it
  // was not, or if choose() needs more inputs of a measured program than its score.
  std::shared_ptr<const ProgramInputs> inputs_of_scored(const space::Candidate& candidate) const;
  void forget_inputs() { scored_.clear(); }
  // Computes the inputs of a program.
  Result<std::shared_ptr<const ProgramInputs>> make_inputs(const Proposal& proposal);
  // The error by which the model could not judge candidates.
  const std::optional<Error>& model_error() const { return model_error_; }
  // Number of candidates that the model judged.
  size_t judged() const { return judged_; }

 private:
  // Returns minus the logarithm of the estimated seconds after correction; -inf for a candidate that
  // cannot be built.
  double latency_draft(const space::Candidate& candidate) const;
  // Returns the bytes of the candidate's temporaries: 0 if the objective does not use them, +inf for a
  // candidate that cannot be built.
  double bytes_of(const space::Candidate& candidate) const;
  // Prediction of the model for each candidate: 0 seconds if the draft is not finite or the
  // candidate cannot be built, nothing if there was no time. An error of the model is the error of
  // the whole call.
  using Predictions = std::vector<std::optional<learn::Prediction>>;
  // The facts about a round that turn a draft and a prediction into a score.
  struct Basis {
    double best_seconds = 0;         // of the best measured program
    double best_log_cost = 0;        // its cost
    double watts = 0;                // energy / time
    double scale = 1;                // factor on predicted seconds
    double draft_variance = 0;       // of log(measured / estimated)
    double draft_sigma = 0;          // deviation that remains within structures
    double measured = 0;             // number of programs
    bool corrects_estimate = false;  // CostModel::corrects_estimate
  };
  struct Judgement {
    float score;
    Belief belief;
  };
  Result<Predictions> predict(std::span<const space::Candidate> candidates, std::span<const float> drafts,
                              const ScoringRequest& request, ThreadPool& pool);
  // Returns the factor on the seconds of a model that only ranks, so that its prediction for the
  // best program equals the measured time. 0: no program ran, or the model predicts that the best
  // one cannot run.
  Result<double> scale_of(const learn::CostModel& model, const MeasuredPrograms& programs) const;
  Basis basis_of(const MeasuredPrograms& programs) const;  // with a scale of 1
  // Returns nothing if the program cannot be built or run. draft: minus the logarithm of seconds.
  std::optional<Judgement> judge(double draft, const std::optional<learn::Prediction>& prediction,
                                 double bytes, const Basis& basis) const;
  // sigma: standard deviation of the logarithm of the seconds.
  Belief belief(double log_seconds, double sigma, double bytes, const Basis& basis) const;
  double log_cost(double log_seconds, double bytes, double watts) const;
  // Returns what is believed of the informative() measured programs. The error is the model's.
  Result<std::vector<MeasuredBelief>> measured_beliefs(const ScoringRequest& request,
                                                       const MeasuredPrograms& programs) const;
  // Computes the inputs of candidates that have none yet, until the time is up.
  void complete_inputs(std::span<const ScoredCandidate> candidates, std::span<const size_t> places,
                       const ScoringRequest& request, ThreadPool& pool);
  // Extractors of the inputs by which candidates are scored, and of those by which a batch is chosen.
  using Extractors = std::vector<std::unique_ptr<InputsOfCandidates>>;
  std::unique_ptr<InputsOfCandidates> take_extractor(Extractors& idle, const learn::ModelInputs& inputs);
  void give_back(Extractors& idle, std::unique_ptr<InputsOfCandidates> extractor);
  // Returns whether these inputs are enough for choose().
  bool can_compare(const std::shared_ptr<const ProgramInputs>& inputs) const;

  const PreparedTask& task_;
  bool uses_draft_;
  learn::ModelInputs inputs_;           // for scores
  learn::ModelInputs compared_inputs_;  // for the choice of a batch: those for scores, and more
  const Objective& objective_;
  DraftCorrection correction_;
  // Guards the extractors and judged_ while several threads predict.
  std::mutex mutex_;
  Extractors scoring_extractors_, comparing_extractors_;
  // Candidates that were scored, by their hash: their inputs if they are known, and what is believed.
  struct Scored {
    std::shared_ptr<const ProgramInputs> inputs;
    Belief belief;
  };
  std::unordered_map<uint64_t, Scored> scored_;
  size_t judged_ = 0;
  std::optional<Error> model_error_;
};

}  // namespace tensorsmith::search
