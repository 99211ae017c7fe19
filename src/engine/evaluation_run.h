// Predictions of a model for many programs, by batches, and how they compare with what was measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "learn/cost_model.h"
#include "learn/latency/evaluation.h"

namespace tensorsmith::engine {

struct MeasuredProgram {
  const learn::StoredWorkload* workload = nullptr;  // outlives the run
  const target::Device* device = nullptr;           // outlives the run
  feature::LeafFeatures leaves;                     // empty: a failed program that could not be made
  sched::Trace trace;                               // only for models that read it
  double seconds = 0;                               // measured; +inf: failed
};

class EvaluationRun {
 public:
  // seen: called with each program and its prediction, in their order; may be empty.
  using Seen = std::function<Status(const MeasuredProgram&, const learn::Prediction&)>;
  EvaluationRun(const learn::CostModel& model, int threads, const Clock& clock, Seen seen = {});

  // Takes the program's contents.
  Status add(MeasuredProgram& program);
  // After the last program.
  Status finish() { return flush(); }

  const learn::Evaluation& evaluation() const { return evaluation_; }
  // Of the model alone: features are there, all threads predict. 0 where nothing was predicted.
  double programs_per_second() const;

 private:
  Status flush();

  const learn::CostModel& model_;
  const Clock& clock_;
  Seen seen_;
  int threads_;
  ThreadPool pool_;
  std::vector<MeasuredProgram> batch_;
  size_t filled_ = 0;
  learn::Evaluation evaluation_;
  int64_t predicted_ = 0;
  double seconds_ = 0;
};

// All records of a part of a store. records: ascending.
Status evaluate_store(const learn::Store& store, const std::vector<const target::Device*>& devices,
                      const std::vector<int64_t>& records, bool traces, EvaluationRun& run);

}  // namespace tensorsmith::engine
