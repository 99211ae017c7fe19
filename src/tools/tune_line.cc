#include "tools/tune_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/console.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

using engine::TunePhase;

struct PhaseWords {
  const char* name = "";
  const char* sentence = "";
};

PhaseWords words_of(const std::optional<TunePhase>& phase) {
  if (!phase) return {"reading", "reading the model"};
  switch (*phase) {
    case TunePhase::kUntuned:
      return {"compiling", "compiling and timing the untuned model"};
    case TunePhase::kSearch:
      return {"measuring", "measuring schedules"};
    case TunePhase::kCompare:
      return {"comparing", "compiling and timing the fastest schedules in the model"};
    case TunePhase::kWrite:
      return {"writing", "writing the compiled model"};
  }
  return {};
}

// Appends parts while they fit; after one that does not fit, nothing more is added.
class Line {
 public:
  explicit Line(size_t columns) : columns_(columns) {}
  void add(const std::string& part) {
    full_ = full_ || text_.size() + part.size() > columns_;
    if (!full_) text_ += part;
  }
  std::string text() const {
    const size_t end = text_.find_last_not_of(' ');
    return text_.substr(0, end == std::string::npos ? 0 : end + 1);
  }

 private:
  size_t columns_;
  std::string text_;
  bool full_ = false;
};

}  // namespace

void TuneLine::begins(TunePhase phase, const engine::PhasePlan& plan, double now) {
  phase_ = phase;
  plan_ = plan;
  phase_start_ = now;
  if (phase == TunePhase::kCompare) speedup_.reset();
}

void TuneLine::update(const search::TuneProgress& progress, double now) {
  if (!progress_) {
    first_update_ = now;
    first_trials_ = progress.trials;
  }
  progress_ = progress;
  updated_ = now;
}

std::optional<double> TuneLine::trial_seconds_left(double now) const {
  if (limits_.trials == 0 || !progress_) return std::nullopt;
  const int64_t made = progress_->trials - first_trials_;
  if (made <= 0) return std::nullopt;
  const double pace = (updated_ - first_update_) / made;
  const double left = (limits_.trials - progress_->trials) * pace;
  return std::max(left - (now - updated_), 0.0);
}

std::optional<double> TuneLine::seconds_left(double now) const {
  double left = std::numeric_limits<double>::infinity();
  if (phase_ == TunePhase::kCompare || phase_ == TunePhase::kWrite) {
    // The search may have ended early.
    if (plan_.seconds > 0) left = plan_.seconds + plan_.later_seconds - (now - phase_start_);
  } else {
    if (limits_.seconds > 0) left = start_ + limits_.seconds - now;
    if (phase_ == TunePhase::kSearch) {
      if (const auto trials = trial_seconds_left(now)) left = std::min(left, *trials + plan_.later_seconds);
      left = std::max(left, plan_.later_seconds);
    }
  }
  if (!std::isfinite(left) || left <= 0) return std::nullopt;
  return left;
}

std::string TuneLine::text(double now, size_t columns) const {
  Line line(columns);
  // A fixed width keeps the figures in place when the phase changes.
  line.add(fmt::format("{:<9}", words_of(phase_).name));
  const std::string elapsed = format_duration(now - start_);
  line.add(limits_.seconds > 0 ? fmt::format("  {} / {}", elapsed, format_duration(limits_.seconds))
                               : "  " + elapsed);
  if (const auto left = seconds_left(now)) line.add("  ETA " + format_duration(*left));
  if (!progress_) return line.text();

  const search::TuneProgress& p = *progress_;
  const engine::Estimate estimate = engine::estimate_of(p);
  if (speedup_) {
    line.add(fmt::format("  end to end {} -> {} ({})", format_seconds(speedup_->untuned_seconds),
                         format_seconds(speedup_->tuned_seconds), engine::ratio_text(speedup_->ratio())));
  } else if (estimate.known()) {
    line.add(fmt::format("  estimate {} -> {} ({})", format_seconds(estimate.untuned_seconds),
                         format_seconds(estimate.tuned_seconds), engine::ratio_text(estimate.ratio())));
    if (phase_ == TunePhase::kSearch && p.expected_model_seconds > 0)
      line.add(fmt::format(" -> {} expected", format_seconds(p.expected_model_seconds)));
  }
  std::string trials = std::to_string(p.trials);
  if (limits_.trials > 0) trials += fmt::format(" / {}", limits_.trials);
  trials += " trials";
  if (p.elapsed_seconds > 0) trials += fmt::format(" ({:.1f}/s)", p.trials / p.elapsed_seconds);
  line.add("  " + trials);
  if (p.failures > 0) line.add(fmt::format(", {} failed", p.failures));
  if (phase_ == TunePhase::kSearch && p.current_task < p.tasks.size()) {
    const auto& task = p.tasks[p.current_task];
    if (std::isfinite(task.best_seconds))
      line.add(fmt::format("  | {}: {}", printable(task.name), format_seconds(task.best_seconds)));
  }
  return line.text();
}

std::string TuneLine::phase() const { return words_of(phase_).sentence; }

std::string TuneLine::phase_text(double now) const {
  return fmt::format("{:5.1f} s  {} ...", elapsed_seconds(now), phase());
}

}  // namespace tensorsmith::tools
