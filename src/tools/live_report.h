// The report of a run while it goes on.
#pragma once

#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/report_of_run.h"
#include "tools/report_run.h"
#include "tools/report_server.h"
#include "tools/tune_line.h"

namespace tensorsmith::tools {

// Passes on what a run tells, and shows it to browsers.
class LiveReport final : public engine::TuneEvents {
 public:
  // Of what the report tells; all outlives it.
  struct Run {
    const std::vector<engine::ModelToTune>& models;
    const target::Device& device;
    record::MeasureSettings settings;
    std::string database;  // its path: read beside the run that writes it
    ReportSettings shown;
  };
  // Until follow() the page says only that the run begins. next: told all that this is told. Errors: those of
  // ReportServer.
  static Result<std::unique_ptr<LiveReport>> serve(int port, const Clock& clock, const RunLimits& limits,
                                                   engine::TuneEvents& next);
  ~LiveReport() override;

  void follow(Run run);
  std::string url() const { return server_->url(); }

  void begins(engine::TunePhase phase, const engine::PhasePlan& plan) override;
  void progress(const search::TuneProgress& p) override;

 private:
  LiveReport(const Clock& clock, const RunLimits& limits, engine::TuneEvents& next);
  nlohmann::json data();

  const Clock& clock_;
  engine::TuneEvents& next_;
  std::mutex mutex_;  // of line_, trials_ and run_
  TuneLine line_;
  int64_t trials_ = 0;
  std::optional<Run> run_;
  // Of the server's calls, which are one at a time.
  engine::Report report_;
  int64_t reported_trials_ = -1;
  engine::ReportLoops loops_;
  std::unique_ptr<ReportServer> server_;  // the last member: its threads end first
};

}  // namespace tensorsmith::tools
