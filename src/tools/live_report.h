// The report of a run while it goes on.
#pragma once

#include <atomic>
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
    std::string result;  // ReportLive's
  };
  // Until follow() the page says only that the run begins. next: told all that this is told. Errors: those of
  // ReportServer.
  static Result<std::unique_ptr<LiveReport>> serve(int port, const Clock& clock, const RunLimits& limits,
                                                   engine::TuneEvents& next);
  ~LiveReport() override;

  void follow(Run run);
  // The run has ended, with a report if it has one. Returns when the pages that follow it have been sent this, after some
  // seconds at most, or when `cancel` becomes true.
  void end(const std::string& state, std::optional<engine::Report> report, const std::atomic<bool>& cancel);
  std::string url() const { return server_->url(); }

  void begins(engine::TunePhase phase, const engine::PhasePlan& plan) override;
  void progress(const search::TuneProgress& p) override;
  void compared(const engine::Speedup& speedup) override;

 private:
  LiveReport(const Clock& clock, const RunLimits& limits, engine::TuneEvents& next);
  nlohmann::json data(const std::string& data_url);
  void show();

  const Clock& clock_;
  engine::TuneEvents& next_;
  std::mutex mutex_;  // of what follows until report_
  TuneLine line_;
  std::optional<search::TuneProgress> progress_;
  std::optional<Run> run_;
  std::optional<std::string> ended_;  // what became of the run
  std::optional<engine::Report> final_;
  // Of the server's calls, which are one at a time.
  engine::Report report_;
  int64_t reported_trials_ = -1;
  engine::ReportLoops loops_;
  std::unique_ptr<ReportServer> server_;  // the last member: its threads end first
};

}  // namespace tensorsmith::tools
