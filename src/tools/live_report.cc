#include "tools/live_report.h"

#include <nlohmann/json.hpp>

#include "tools/console.h"
#include "tools/report_page.h"

namespace tensorsmith::tools {
namespace {

constexpr size_t kColumns = 200;
// Pages poll every two seconds.
constexpr double kFarewellSeconds = 10, kFarewellStep = 0.1;

}  // namespace

LiveReport::LiveReport(const Clock& clock, const RunLimits& limits, engine::TuneEvents& next)
    : clock_(clock), next_(next), line_(clock.monotonic_seconds(), limits) {
  report_.title = "Tensorsmith";
}

LiveReport::~LiveReport() = default;

Result<std::unique_ptr<LiveReport>> LiveReport::serve(int port, const Clock& clock, const RunLimits& limits,
                                                      engine::TuneEvents& next) {
  std::unique_ptr<LiveReport> live(new LiveReport(clock, limits, next));
  TS_ASSIGN_OR_RETURN(live->server_, ReportServer::start(port));
  live->show();
  return live;
}

void LiveReport::show() {
  server_->serve({[this](const std::string& data_url) { return report_page(data(data_url)); },
                  [this](const std::string& data_url) { return json_text(data(data_url)); }});
}

void LiveReport::end(const std::string& state, std::optional<engine::Report> report,
                     const std::atomic<bool>& cancel) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = state;
    final_ = std::move(report);
  }
  show();
  const bool was_cancelled = cancel;
  const double start = clock_.monotonic_seconds();
  while (!server_->wait_until_sent(kFarewellStep)) {
    if (clock_.monotonic_seconds() - start > kFarewellSeconds || cancel != was_cancelled) return;
  }
}

void LiveReport::follow(Run run) {
  const std::lock_guard lock(mutex_);
  run_.emplace(std::move(run));
}

void LiveReport::begins(engine::TunePhase phase, const engine::PhasePlan& plan) {
  next_.begins(phase, plan);
  const std::lock_guard lock(mutex_);
  line_.begins(phase, plan, clock_.monotonic_seconds());
}

void LiveReport::progress(const search::TuneProgress& p) {
  next_.progress(p);
  const std::lock_guard lock(mutex_);
  line_.update(p, clock_.monotonic_seconds());
  progress_ = p;
}

void LiveReport::compared(const engine::Speedup& speedup) {
  next_.compared(speedup);
  const std::lock_guard lock(mutex_);
  line_.compared(speedup);
}

nlohmann::json LiveReport::data(const std::string& data_url) {
  ReportLive live;
  live.url = data_url;
  std::string state;
  std::optional<search::TuneProgress> progress;
  const Run* run = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (run_) live.result = run_->result;
    if (ended_) {
      live.running = false;
      live.state = printable(*ended_);
      return report_json(final_ ? *final_ : report_, live);
    }
    const double now = clock_.monotonic_seconds();
    state = line_.text(now, kColumns);
    live.phase = line_.phase();
    live.elapsed_seconds = line_.elapsed_seconds(now);
    live.left_seconds = line_.seconds_left(now);
    progress = progress_;
    if (run_) run = &*run_;
  }
  const int64_t trials = progress ? progress->trials : 0;
  if (run != nullptr && trials != reported_trials_) {
    // Opens a separate connection, so that the run's writes do not wait for the page.
    auto made = [&]() -> Result<engine::Report> {
      TS_ASSIGN_OR_RETURN(auto database, record::Database::open_read_only(run->database));
      return engine::report_of_run(run->models, {}, progress ? &*progress : nullptr, run->device,
                                   run->settings, *database, &loops_, clock_);
    }();
    if (made.ok()) {
      report_ = std::move(made).value();
      report_.settings = run->shown;
      reported_trials_ = trials;
    } else {
      state += "; its records cannot be read: " + made.error().message();
    }
  }
  live.state = printable(state);
  return report_json(report_, live);
}

}  // namespace tensorsmith::tools
