// Shows the progress of a tuning run on stderr: one redrawn line on a terminal, plain lines
// elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

#include "base/clock.h"
#include "engine/tune/tune_model.h"
#include "tools/tune_line.h"

namespace tensorsmith::tools {

// Destination of a display.
struct DisplayOutput {
  enum class Kind : uint8_t { kNone, kLines, kTerminal };
  Kind kind = Kind::kNone;
  std::function<void(std::string_view)> write = {};
  std::function<size_t()> columns = {};  // width of the terminal
};
// Display on standard error; kNone if `quiet`.
DisplayOutput standard_error_display(bool quiet);

// Thread-safe. The clock must outlive the display.
class ProgressDisplay final : public engine::TuneEvents {
 public:
  // The construction marks the start of the command, which reads the model first.
  ProgressDisplay(const Clock& clock, const RunLimits& limits, DisplayOutput output);
  ~ProgressDisplay() override;
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  bool redraws() const { return output_.kind == DisplayOutput::Kind::kTerminal; }
  void begins(engine::TunePhase phase, const engine::PhasePlan& plan) override;
  void progress(const search::TuneProgress& p) override;
  void compared(const engine::Speedup& speedup) override;
  // Redraws the line as time passes.
  void tick();
  // Calls print(), which may write whole lines to the same terminal without mixing with the redrawn
  // line. print() must not call the display.
  void print_apart(const std::function<void()>& print);
  // Ends the redrawn line, so that other output starts on a new line. Nothing is drawn afterwards.
  void finish();

 private:
  void draw(double now);

  const Clock& clock_;
  const DisplayOutput output_;
  std::mutex mutex_;  // guards the members below
  TuneLine line_;
  bool drawn_ = false, finished_ = false;
  double last_draw_;
};

}  // namespace tensorsmith::tools
