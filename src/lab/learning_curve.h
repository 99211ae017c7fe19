// Learning curves of cost models: how well a model predicts the next programs of a task after it has learned
// from the task's earlier programs, once pre-trained on other tasks and once trained from scratch.
//
// The set-up is that of "Cost Model for Tensor Programs" (github.com/summerspringwei/tvm_oraa,
// python/tvm/meta_schedule/cost_model/xgb_model.py): a task's programs come in rounds, a round is predicted
// before the model learns from it, and a program's label is the fastest seconds of the earlier rounds / its
// seconds. There, the tuner chooses the rounds; here, they are the order of the store's records, which is that
// of the tuner if the store was imported from a search. There, one model learns from all tasks of a network and
// each row of a program counts as a sample; here, each task has a model of its own and each program counts once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "learn/training.h"

namespace tensorsmith::lab {

struct LearningCurveOptions {
  int rounds = 10;        // at least 1
  int batch = 64;         // programs of a round, at least 2
  int seeds = 3;          // trainings of each model, with the seeds 0, 1, ...
  bool shuffled = false;  // the programs of a task are shuffled by the seed, instead of in the store's order
  int threads = 1;        // tasks at a time; each training uses one thread
};

// A way to train models, and models that it has trained on other tasks.
struct CurveModel {
  std::string name;
  std::unique_ptr<learn::CostModelTrainer> trainer;
  std::vector<std::unique_ptr<learn::CostModel>> pretrained;  // one for each seed, or one for all seeds

  const learn::CostModel& pretrained_of(uint64_t seed) const {
    return *pretrained[pretrained.size() == 1 ? 0 : seed];
  }
};

// Makes a CurveModel by its name: a kind of model (cost_model_kinds), which is trained on `training` with each
// seed and default parameters, or the file of a model, which gives the kind and the parameters of the models
// from scratch, too. Errors: kNotFound for another name; those of CostModelKinds::load and of the training.
Result<CurveModel> make_curve_model(const std::string& name, const learn::TrainingData& training,
                                    const std::string& split, int seeds, int threads,
                                    const std::atomic<bool>& cancel);

// The scores of one model on the rounds of a task. A value that is not known is NaN.
struct LearningCurve {
  std::string device, task, name;  // the task's key, then its display name
  size_t model = 0;                // index of the CurveModel
  bool pretrained = false;
  uint64_t seed = 0;
  bool seen = false;  // the pre-trained model was trained on programs of the task
  // Share of the round's faster half that is among the half predicted to be faster: recall of the top 32 of
  // 64. Not known in the first round of a model from scratch, which has learned nothing.
  std::vector<double> top_half;
  // Root mean squared error of the normalized throughput: fastest seconds of the task's earlier rounds /
  // seconds, measured against predicted. Not known in the first round, nor for models that only rank.
  std::vector<double> rmse;
};

struct LearningCurves {
  // By task, model, seed; the pre-trained model before the one from scratch.
  std::vector<LearningCurve> curves;
  int64_t tasks = 0;
  int64_t left_out = 0;  // tasks with fewer measured programs than the rounds need
};

// Returns kInvalidArgument if no task has enough programs for the rounds, before models are trained.
Status check_rounds(const learn::Store& store, const std::vector<int64_t>& records,
                    const LearningCurveOptions& options);

using LearningCurveProgress = std::function<void(int64_t done, int64_t tasks)>;

// `records` are record numbers of the store; failed programs among them are left out. `devices` is indexed by
// the store's device numbers. Errors: those of check_rounds and of the trainings; kCancelled.
Result<LearningCurves> learning_curves(const learn::Store& store,
                                       const std::vector<const target::Device*>& devices,
                                       const std::vector<int64_t>& records,
                                       const std::vector<CurveModel>& models,
                                       const LearningCurveOptions& options,
                                       const LearningCurveProgress& progress,
                                       const std::atomic<bool>& cancel);

// Mean over tasks and seeds, by round. Deviations are sample standard deviations: over the tasks, of their means
// over the seeds; over the seeds, of their means over the tasks.
struct CurveMean {
  std::vector<double> mean, over_tasks, over_seeds;
};
// value: LearningCurve::top_half or LearningCurve::rmse.
CurveMean mean_of_curves(const std::vector<LearningCurve>& curves, size_t model, bool pretrained,
                         std::vector<double> LearningCurve::* value);

}  // namespace tensorsmith::lab
