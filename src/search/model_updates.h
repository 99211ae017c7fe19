// Decides when the cost model of a run learns from the measurements.
#pragma once

#include <memory>
#include <vector>

#include "search/limits.h"
#include "search/task_state.h"

namespace tensorsmith::search {

class ModelUpdates {
 public:
  // model: null if there is none.
  ModelUpdates(learn::CostModel* model, const Clock& clock, LogSink& log)
      : model_(model), clock_(clock), log_(log) {}

  // The inputs that the model reads of a candidate.
  learn::ModelInputs inputs() const { return model_ != nullptr ? model_->inputs() : learn::ModelInputs{}; }
  // Returns the model if its predictions are meaningful and it has never failed to predict; else
  // null.
  const learn::CostModel* ready() const {
    return model_ != nullptr && !failed_ && model_->ready() ? model_ : nullptr;
  }
  // Trains the model on all measurements if there are enough new ones and training does not exceed
  // its share of the time. If training fails, the model stays as it was, with a warning; a model that
  // is required returns its error.
  Status update(const std::vector<std::unique_ptr<TaskState>>& states, const Limits& limits);
  // Called when the model fails to predict: warns, and the run continues without the model. Returns
  // the error of a model that is required.
  Status take_failure(const Error& error);

 private:
  learn::CostModel* model_;
  const Clock& clock_;
  LogSink& log_;
  size_t rows_ = 0;  // number of rows at the last update
  double seconds_ = 0;
  bool failed_ = false;
};

}  // namespace tensorsmith::search
