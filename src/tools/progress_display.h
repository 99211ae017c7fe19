// Progress of a tuning run on stderr: one line that redraws itself on a terminal, plain lines elsewhere.
#pragma once

#include <string>

#include "base/clock.h"
#include "search/tuner.h"

namespace tensorsmith::tools {

class ProgressDisplay {
 public:
  // limits as given to the tuner, for the bar and the ETA; 0 = none.
  ProgressDisplay(const Clock& clock, int64_t trial_limit, double second_limit);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  bool redraws() const { return terminal_; }
  // Something begins that takes a while and has no measurements to count.
  void phase(const std::string& what);
  void update(const search::TuneProgress& progress);
  // Ends the redrawn line, so that other output starts on its own.
  void finish();

 private:
  std::string line_of(const search::TuneProgress& progress, size_t columns) const;

  const Clock& clock_;
  int64_t trial_limit_;
  double second_limit_;
  bool terminal_;
  double start_;
  bool drawn_ = false;
  double last_draw_ = -1e9;
};

}  // namespace tensorsmith::tools
