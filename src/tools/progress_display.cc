#include "tools/progress_display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <limits>
#include <string>
#include <utility>

#include "tools/console.h"

namespace tensorsmith::tools {
namespace {

using Kind = DisplayOutput::Kind;

constexpr double kTerminalInterval = 0.1;  // seconds between measurements that are drawn
constexpr double kPlainInterval = 5.0;     // seconds between plain lines
constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr size_t kPlainColumns = 400;
constexpr const char* kErase = "\r\033[K";

size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

}  // namespace

DisplayOutput standard_error_display(bool quiet) {
  if (quiet) return {};
  return {isatty(STDERR_FILENO) == 1 ? Kind::kTerminal : Kind::kLines, write_error, terminal_columns};
}

ProgressDisplay::ProgressDisplay(const Clock& clock, const RunLimits& limits, DisplayOutput output)
    : clock_(clock),
      output_(std::move(output)),
      line_(clock.monotonic_seconds(), limits),
      last_draw_(kNever) {
  // Not on plain output, where an error in reading the model is to be the only line.
  tick();
}

ProgressDisplay::~ProgressDisplay() { finish(); }

void ProgressDisplay::draw(double now) {
  if (finished_) return;
  last_draw_ = now;
  if (output_.kind == Kind::kTerminal) {
    // The last column stays empty, because some terminals wrap after it.
    output_.write(kErase + line_.text(now, output_.columns() - 1));
    drawn_ = true;
  } else if (output_.kind == Kind::kLines) {
    output_.write(line_.text(now, kPlainColumns) + "\n");
  }
}

void ProgressDisplay::begins(engine::TunePhase phase, const engine::PhasePlan& plan) {
  const std::lock_guard lock(mutex_);
  const double now = clock_.monotonic_seconds();
  line_.begins(phase, plan, now);
  if (redraws()) draw(now);
  if (output_.kind == Kind::kLines && !finished_) output_.write(line_.phase_text(now) + "\n");
  last_draw_ = kNever;  // the next progress event is drawn at once
}

void ProgressDisplay::progress(const search::TuneProgress& p) {
  const std::lock_guard lock(mutex_);
  const double now = clock_.monotonic_seconds();
  line_.update(p, now);
  if (now - last_draw_ >= (redraws() ? kTerminalInterval : kPlainInterval)) draw(now);
}

void ProgressDisplay::compared(const engine::Speedup& speedup) {
  const std::lock_guard lock(mutex_);
  line_.compared(speedup);
}

void ProgressDisplay::tick() {
  const std::lock_guard lock(mutex_);
  if (redraws()) draw(clock_.monotonic_seconds());
}

void ProgressDisplay::print_apart(const std::function<void()>& print) {
  const std::lock_guard lock(mutex_);
  if (!drawn_) return print();
  output_.write(kErase);
  print();
  draw(clock_.monotonic_seconds());
}

void ProgressDisplay::finish() {
  const std::lock_guard lock(mutex_);
  if (drawn_) output_.write("\n");
  drawn_ = false;
  finished_ = true;
}

}  // namespace tensorsmith::tools
