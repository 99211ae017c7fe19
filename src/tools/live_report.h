// The report of a run, updated while it goes on.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/report/report_of_run.h"
#include "tools/report_run.h"
#include "tools/report_server.h"
#include "tools/tune_line.h"

namespace tensorsmith::tools {

// Forwards the events of a run and serves its report to browsers.
class LiveReport final : public engine::TuneEvents {
 public:
  // Contents of the report; all references must outlive the LiveReport.
  struct Run {
    const std::vector<engine::ModelToTune>& models;
    const target::Device& device;
    record::MeasureSettings settings;
    std::string database;  // path; it is read while the run writes to it
    ReportSettings shown;
    std::string result;  // see ReportLive::result
  };
  // Until follow() is called, the page says only that the run begins. All events are forwarded to
  // `next`. Errors: those of ReportServer.
  static Result<std::unique_ptr<LiveReport>> serve(int port, const Clock& clock, const RunLimits& limits,
                                                   engine::TuneEvents& next);
  ~LiveReport() override;

  void follow(Run run);
  // Shows that the run has ended, with its final report if there is one. Returns when the pages
  // that follow the run have received this, after a few seconds at most, or when `cancel` becomes
  // true.
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
  std::mutex mutex_;  // guards the members up to final_
  TuneLine line_;
  std::optional<search::TuneProgress> progress_;
  std::optional<Run> run_;
  std::optional<std::string> ended_;  // outcome of the run
  std::optional<engine::Report> final_;
  // Used only in the server's callbacks, which run one at a time.
  engine::Report report_;
  int64_t reported_trials_ = -1;
  engine::ReportLoops loops_;
  // Declared last, so that its threads end before the other members are destroyed.
  std::unique_ptr<ReportServer> server_;
};

}  // namespace tensorsmith::tools
