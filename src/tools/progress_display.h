// Progress of a tuning run on stderr: one line that redraws itself on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

#include "base/clock.h"
#include "engine/tune_model.h"
#include "tools/tune_line.h"

namespace tensorsmith::tools {

// Where a display writes to.
struct DisplayOutput {
  enum class Kind : uint8_t { kNone, kLines, kTerminal };
  Kind kind = Kind::kNone;
  std::function<void(std::string_view)> write = {};
  std::function<size_t()> columns = {};  // of the terminal
};
// kNone if quiet.
DisplayOutput standard_error_display(bool quiet);

// Its functions may be called from several threads. The clock outlives it.
class ProgressDisplay final : public engine::TuneEvents {
 public:
  // The command starts now, with reading the model.
  ProgressDisplay(const Clock& clock, const RunLimits& limits, DisplayOutput output);
  ~ProgressDisplay() override;
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  bool redraws() const { return output_.kind == DisplayOutput::Kind::kTerminal; }
  void begins(engine::TunePhase phase, const engine::PhasePlan& plan) override;
  void progress(const search::TuneProgress& p) override;
  void compared(const engine::Speedup& speedup) override;
  // Time has passed: redraws.
  void tick();
  // Calls print(), which writes whole lines to the same terminal, so that they do not run into the redrawn one.
  // print() must not call the display.
  void print_apart(const std::function<void()>& print);
  // Ends the redrawn line, so that other output starts on its own. Nothing is drawn afterwards.
  void finish();

 private:
  void draw(double now);

  const Clock& clock_;
  const DisplayOutput output_;
  std::mutex mutex_;  // of all below
  TuneLine line_;
  bool drawn_ = false, finished_ = false;
  double last_draw_;
};

}  // namespace tensorsmith::tools
