// Models that learn while a search measures. Both keep what they learn for one run: they have no file.
#pragma once

#include <memory>

#include "learn/cost_model.h"
#include "learn/gbt/gbt_fit.h"

namespace tensorsmith::learn {

// With fewer measured programs over all tasks a model that begins from nothing knows less than a draft.
inline constexpr size_t kMinTrainingPrograms = 24;

// XGBoost from nothing over per-store rows (Ansor's model); ranks only. What the rows' predictions add up to is
// the task's fastest time over the program's; a program's "seconds" are its inverse.
std::unique_ptr<CostModel> make_online_xgboost(const GbtOptions& options = GbtOptions::online());

// What a trained model says, and boosted trees that learn what it gets wrong on this machine:
//   log seconds = log prior + mean residual of the task + trees(rows)
// where residual = log(measured / prior); the task's mean is drawn to that of all tasks, as if it had two
// more measurements of that. Its deviation is the prior's until enough was measured to know how far it was off
// on programs before it learned from them.
std::unique_ptr<CostModel> make_residual_model(std::unique_ptr<CostModel> prior,
                                               const GbtOptions& options = GbtOptions::online());

}  // namespace tensorsmith::learn
