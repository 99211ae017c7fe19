// When the cost model of a run learns from what was measured.
#pragma once

#include <memory>
#include <vector>

#include "search/limits.h"
#include "search/task_state.h"

namespace tensorsmith::search {

class ModelUpdates {
 public:
  // model: null = none.
  ModelUpdates(learn::CostModel* model, const Clock& clock, LogSink& log)
      : model_(model), clock_(clock), log_(log) {}

  // What a candidate's inputs have to hold for the model.
  learn::ModelInputs inputs() const { return model_ != nullptr ? model_->inputs() : learn::ModelInputs{}; }
  // The model, once its predictions mean anything and as long as it never failed to predict; else null.
  const learn::CostModel* ready() const {
    return model_ != nullptr && !failed_ && model_->ready() ? model_ : nullptr;
  }
  // Gives the model all that was measured where there is enough news and training keeps to its share of the
  // time. A model that fails stays as it was, with a warning.
  void update(const std::vector<std::unique_ptr<TaskState>>& states, const Limits& limits);
  // It could not predict: a warning, and the run goes on without it.
  void take_failure(const Error& error);

 private:
  learn::CostModel* model_;
  const Clock& clock_;
  LogSink& log_;
  size_t rows_ = 0;  // at the last update
  double seconds_ = 0;
  bool failed_ = false;
};

}  // namespace tensorsmith::search
