#include "tools/live_report.h"

#include <nlohmann/json.hpp>

#include "tools/console.h"
#include "tools/report_page.h"

namespace tensorsmith::tools {
namespace {

constexpr size_t kColumns = 200;

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
  live->server_->serve({[l = live.get()] { return report_page(l->data()); },
                        [l = live.get()] { return json_text(l->data()); }});
  return live;
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
  trials_ = p.trials;
}

nlohmann::json LiveReport::data() {
  std::string state;
  int64_t trials = 0;
  const Run* run = nullptr;
  {
    const std::lock_guard lock(mutex_);
    state = line_.text(clock_.monotonic_seconds(), kColumns);
    trials = trials_;
    if (run_) run = &*run_;
  }
  if (run != nullptr && trials != reported_trials_) {
    // A reader of its own: what the run writes waits for no page.
    auto made = [&]() -> Result<engine::Report> {
      TS_ASSIGN_OR_RETURN(auto database, record::Database::open_read_only(run->database));
      return engine::report_of_run(run->models, {}, run->device, run->settings, *database, &loops_, clock_);
    }();
    if (made.ok()) {
      report_ = std::move(made).value();
      report_.settings = run->shown;
      reported_trials_ = trials;
    } else {
      state += "; its records cannot be read: " + made.error().message();
    }
  }
  return report_json(report_, {true, printable(state), server_->data_url()});
}

}  // namespace tensorsmith::tools
