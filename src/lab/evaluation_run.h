// Predicts many programs in batches and compares the predictions with measured times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "learn/cost_model.h"
#include "learn/latency/evaluation.h"

namespace tensorsmith::lab {

struct EvaluatedProgram {
  const learn::StoredWorkload* workload = nullptr;  // must outlive the run
  const target::Device* device = nullptr;           // must outlive the run
  feature::LeafFeatures leaves;               // empty: a failed program whose features could not be extracted
  sched::Trace trace;                         // only for models that read traces
  std::optional<space::EstimateParts> parts;  // only for models that read them
  double seconds = 0;                         // measured; +inf: failed
};

class EvaluationRun {
 public:
  // Called with each program and its prediction, in order; may be empty.
  using Seen = std::function<Status(const EvaluatedProgram&, const learn::Prediction&)>;
  EvaluationRun(const learn::CostModel& model, int threads, const Clock& clock, Seen seen = {});

  // Moves the program's contents.
  Status add(EvaluatedProgram& program);
  // Must be called after the last program.
  Status finish() { return flush(); }

  const learn::Evaluation& evaluation() const { return evaluation_; }
  // Throughput of the model alone on all threads, without feature extraction. 0 if nothing was
  // predicted.
  double programs_per_second() const;

 private:
  Status flush();

  const learn::CostModel& model_;
  const Clock& clock_;
  Seen seen_;
  int threads_;
  ThreadPool pool_;
  std::vector<EvaluatedProgram> batch_;
  size_t filled_ = 0;
  learn::Evaluation evaluation_;
  int64_t predicted_ = 0;
  double seconds_ = 0;
};

// Evaluates these records of a store; `records` is ascending.
Status evaluate_store(const learn::Store& store, const std::vector<const target::Device*>& devices,
                      const std::vector<int64_t>& records, const learn::ModelInputs& inputs,
                      EvaluationRun& run);

}  // namespace tensorsmith::lab
