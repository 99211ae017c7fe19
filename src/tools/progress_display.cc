#include "tools/progress_display.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "tools/console.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

constexpr double kTerminalInterval = 0.1;  // seconds between redraws
constexpr double kPlainInterval = 5.0;     // seconds between plain lines

size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

}  // namespace

ProgressDisplay::ProgressDisplay(const Clock& clock, int64_t trial_limit, double second_limit)
    : clock_(clock),
      trial_limit_(trial_limit),
      second_limit_(second_limit),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(clock.monotonic_seconds()) {}

ProgressDisplay::~ProgressDisplay() { finish(); }

std::string ProgressDisplay::line_of(const search::TuneProgress& p, size_t columns) const {
  double share = 0;
  if (second_limit_ > 0) share = std::max(share, p.elapsed_seconds / second_limit_);
  if (trial_limit_ > 0)
    share = std::max(share, static_cast<double>(p.trials) / static_cast<double>(trial_limit_));
  share = std::clamp(share, 0.0, 1.0);
  const double eta = share > 0.005 ? p.elapsed_seconds * (1 - share) / share : -1;
  const double rate = p.elapsed_seconds > 0 ? static_cast<double>(p.trials) / p.elapsed_seconds : 0;

  std::string model = "model -";
  const double before = p.model_default_seconds();
  const double best = p.model_best_seconds();
  if (std::isfinite(before) && std::isfinite(best) && best > 0) {
    model =
        fmt::format("model {} -> {} ({:.2f}x)", format_seconds(before), format_seconds(best), before / best);
  }
  std::string task;
  if (p.current_task < p.tasks.size()) {
    const auto& t = p.tasks[p.current_task];
    task = fmt::format("{}: {}", printable(t.name), format_seconds(t.best_seconds));
  }
  std::string bar;
  if (terminal_) {
    constexpr int kWidth = 20;
    const int filled = static_cast<int>(share * kWidth);
    bar = "[" + std::string(static_cast<size_t>(filled), '#') +
          std::string(static_cast<size_t>(kWidth - filled), '.') + "] ";
  }
  std::string line = fmt::format("{}{:3.0f} %  {} trials ({:.1f}/s)  ETA {}  {}  | {}", bar, share * 100,
                                 p.trials, rate, eta >= 0 ? format_duration(eta) : "-", model, task);
  if (line.size() > columns) line.resize(columns);
  return line;
}

void ProgressDisplay::phase(const std::string& what) {
  const std::string line = fmt::format("{:5.1f} s  {} ...", clock_.monotonic_seconds() - start_, what);
  write_error(terminal_ ? "\r\033[K" + line : line + "\n");
  drawn_ = drawn_ || terminal_;
  last_draw_ = -1e9;  // the next update is drawn at once
}

void ProgressDisplay::update(const search::TuneProgress& progress) {
  const double now = clock_.monotonic_seconds();
  if (now - last_draw_ < (terminal_ ? kTerminalInterval : kPlainInterval)) return;
  last_draw_ = now;
  if (terminal_) {
    write_error("\r\033[K" + line_of(progress, terminal_columns() - 1));
    drawn_ = true;
  } else {
    write_error(line_of(progress, 400) + "\n");
  }
}

void ProgressDisplay::finish() {
  if (!drawn_) return;
  write_error("\n");
  drawn_ = false;
}

}  // namespace tensorsmith::tools
