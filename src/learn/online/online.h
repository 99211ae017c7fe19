// Models that learn from the measurements of a search. What they learn lasts for one run; they have
// no file.
#pragma once

#include <memory>

#include "learn/cost_model.h"
#include "learn/gbt/gbt_fit.h"

namespace tensorsmith::learn {

// With fewer measured programs over all tasks, an untrained model is worse than the analytic draft
// model.
inline constexpr size_t kMinTrainingPrograms = 24;

// Ansor's model: XGBoost over per-store rows, trained from scratch; ranks only. The sum over a
// program's rows predicts the task's fastest time / the program's time; the predicted "seconds" are
// its inverse.
std::unique_ptr<CostModel> make_online_xgboost(const GbtOptions& options = GbtOptions::online());

// Combines a trained model (the prior) with boosted trees that learn its errors on this machine:
//   log seconds = log prior + mean residual of the task + trees(rows)
// where residual = log(measured / prior). The mean of a task is shrunk towards that of all tasks,
// with a weight of two measurements. The deviation is the prior's until there are enough
// measurements to know the errors on programs that the model had not yet learned from.
std::unique_ptr<CostModel> make_residual_model(std::unique_ptr<CostModel> prior,
                                               const GbtOptions& options = GbtOptions::online());

}  // namespace tensorsmith::learn
