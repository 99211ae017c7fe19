#include "tools/training_display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/report.h"

namespace tensorsmith::tools {

learn::TrainingControl training_control(const learn::Processes& processes, uint64_t seed, int threads,
                                        std::string command, const std::string& checkpoint) {
  learn::TrainingControl control;
  control.seed = seed;
  control.threads = threads;
  control.command = std::move(command);
  if (processes.count > 1) control.command += " --ranks " + std::to_string(processes.count);
  control.processes = processes;
  if (processes.rank == 0) control.checkpoint = checkpoint;
  control.stop = [&interrupted = catch_interrupts()] { return interrupted.load(); };
  return control;
}

TrainingDisplay::TrainingDisplay(const Clock& clock, int64_t programs)
    : clock_(clock), programs_(programs), terminal_(isatty(STDERR_FILENO) == 1) {}

TrainingDisplay::~TrainingDisplay() {
  if (drawn_) write_error("\n");
}

void TrainingDisplay::update(const learn::TrainingProgress& p) {
  const double now = clock_.monotonic_seconds();
  if (first_step_ < 0) {
    first_step_ = p.step;
    start_ = last_ = now;
    return;
  }
  if (p.step < p.steps && now - last_ < (terminal_ ? 0.2 : 5.0)) return;
  last_ = now;
  // Counts from the first step seen, since a resumed training does not begin at step 0.
  const double steps = p.step - first_step_, elapsed = now - start_;
  const double rate = p.samples_per_second > 0 ? p.samples_per_second : steps * programs_ / elapsed;
  std::string validation = std::isfinite(p.validation_loss) ? fmt::format("{:.5f}", p.validation_loss) : "-";
  write_error(fmt::format("{}{:>5}/{}  loss {:.5f}  validation {}  {:.0f} programs/s  ETA {}{}",
                          terminal_ ? "\r\033[K" : "", p.step, p.steps, p.train_loss, validation, rate,
                          format_duration(elapsed / steps * (p.steps - p.step)), terminal_ ? "" : "\n"));
  drawn_ = terminal_;
}

}  // namespace tensorsmith::tools
