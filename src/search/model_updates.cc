#include "search/model_updates.h"

namespace tensorsmith::search {

namespace {

// An update waits until the data has grown by kGrowth since the last one, and until training has
// taken no more than kTimeShare of the time.
constexpr double kGrowth = 0.12;
constexpr double kTimeShare = 0.12;

}  // namespace

Status ModelUpdates::update(const std::vector<std::unique_ptr<TaskState>>& states, const Limits& limits) {
  if (model_ == nullptr || failed_ || !model_->learns()) return {};
  size_t rows = 0;
  for (const auto& state : states) rows += state->programs().rows().size();
  if (rows == 0) return {};
  if (rows_ > 0 && rows < rows_ * (1 + kGrowth)) return {};
  if (rows_ > 0 && seconds_ > kTimeShare * limits.elapsed()) return {};
  const learn::ModelInputs wanted = inputs();
  std::vector<learn::MeasuredProgram> programs;
  for (const auto& state : states)
    for (size_t r = 0; r < state->programs().rows().size(); ++r) {
      const auto measured = state->measured_program(r);
      // A program from outside of the design space has no parts of its estimate.
      if (wanted.rows && measured.program.rows->rows == 0) continue;
      if (wanted.only_parts() && measured.program.parts == nullptr) continue;
      programs.push_back(measured);
    }
  if (programs.empty()) return {};
  const double before = clock_.monotonic_seconds();
  const Status updated = model_->update(programs);
  seconds_ += clock_.monotonic_seconds() - before;
  rows_ = rows;
  if (!updated.ok() && model_->required()) return updated;
  if (!updated.ok()) log_.log(LogLevel::kWarning, "cost model: " + updated.error().message());
  return {};
}

Status ModelUpdates::take_failure(const Error& error) {
  if (model_->required()) return error;
  if (failed_) return {};
  failed_ = true;
  log_.log(LogLevel::kWarning,
           "cost model: " + error.message() +
               "; from now on the search ranks candidates by the design space's estimate only");
  return {};
}

}  // namespace tensorsmith::search
