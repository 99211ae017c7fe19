#include "learn/latency/tensorsmith_forests.h"

#include "learn/gbt/forest_file.h"
#include "learn/latency/kinds.h"

namespace tensorsmith::learn {

namespace {

constexpr const char* kWidths = "widths";  // tensor with the width of each finished forest
std::string step_name(size_t step) { return "step" + std::to_string(step); }

}  // namespace

Result<Forest> ForestFits::next(const PackSumData& rows, const PackSumData& watched,
                                const std::string& member, PackSumOptions options) {
  const int at = next_++;
  if (at < std::ssize(forests_)) {
    const Forest& finished = forests_[at];
    if (finished.width() != rows.width)
      return Error{ErrorCode::kCorrupt, "", "a forest of the checkpoint has rows of another width"};
    return finished;
  }
  options.threads = control_.threads;
  options.seed = control_.seed + at;
  options.stop = control_.stop;
  options.validation_chooses = false;
  if (control_.progress) {
    options.progress = [&](int round, double loss, double validation_loss) {
      TrainingProgress progress;
      progress.step = at * options.rounds + round;
      progress.steps = steps_ * options.rounds;
      progress.train_loss = loss;
      progress.validation_loss = validation_loss;
      progress.member = member;
      progress.member_step = round;
      control_.progress(progress);
    };
  }
  TS_ASSIGN_OR_RETURN(PackSumFit fitted, fit_pack_sum(rows, watched, options));
  forests_.push_back(fitted.forest);
  TS_RETURN_IF_ERROR(write_checkpoint());
  return std::move(fitted.forest);
}

Status ForestFits::write_checkpoint() const {
  if (control_.checkpoint.empty()) return {};
  ModelFile file;
  file.card = checkpoint_card(training_);
  std::vector<int32_t> widths;
  for (const Forest& forest : forests_) widths.push_back(forest.width());
  file.add<int32_t>(kWidths, {std::ssize(widths)}, widths);
  for (size_t i = 0; i < forests_.size(); ++i) add_forest(file, step_name(i), forests_[i]);
  return write_model_file(file, control_.checkpoint);
}

Status ForestFits::read_checkpoint() {
  if (control_.checkpoint.empty()) return {};
  TS_ASSIGN_OR_RETURN(const auto file, open_checkpoint(control_.checkpoint, training_));
  if (control_.owns_checkpoint) control_.owns_checkpoint();
  if (!file) return {};
  TS_ASSIGN_OR_RETURN(const auto widths, file->values<int32_t>(kWidths, {-1}));
  for (size_t i = 0; i < widths.size(); ++i) {
    TS_ASSIGN_OR_RETURN(Forest forest, read_forest(*file, step_name(i), widths[i]));
    forests_.push_back(std::move(forest));
  }
  return {};
}

}  // namespace tensorsmith::learn
