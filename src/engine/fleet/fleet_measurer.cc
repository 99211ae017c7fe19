#include "engine/fleet/fleet_measurer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "base/hash.h"
#include "engine/fleet/fleet_worker.h"
#include "engine/fleet/measure_protocol.h"
#include "engine/tune/watched_machine.h"
#include "ir/structural.h"
#include "ir/text.h"

namespace tensorsmith::engine {

namespace {

using measure::MeasureRequest;
using record::MeasureResult;

constexpr double kFirstPause = 0.01;
constexpr double kLookForWorkersSeconds = 5;
// How long a cancelled run waits for a final comparison of programs.
constexpr double kCancelledSeconds = 20;

class FleetMeasurer final : public measure::Measurer {
 public:
  FleetMeasurer(std::unique_ptr<record::Fleet> fleet, record::Database& database,
                const target::Device& device, const measure::MeasureOptions& options,
                const FleetPatience& patience, Help help, const Clock& clock, LogSink& log,
                const std::atomic<bool>& cancel)
      : fleet_(std::move(fleet)),
        database_(database),
        device_key_(device.key()),
        settings_{device.compute_units(), options.flush_cache},
        protocol_(print_protocol(options)),
        patience_(patience),
        help_(std::move(help)),
        clock_(clock),
        log_(log),
        cancel_(cancel) {}

  Result<std::vector<MeasureResult>> measure(const ir::Workload& workload,
                                             std::span<const MeasureRequest> candidates,
                                             double best_seconds_so_far, const Done& done) override {
    std::vector<MeasureResult> results;
    if (candidates.empty()) return results;
    TS_ASSIGN_OR_RETURN(const std::vector<record::Job> jobs,
                        jobs_of(workload, candidates, best_seconds_so_far));
    TS_RETURN_IF_ERROR(fleet_->post(jobs));
    std::map<std::string, MeasureResult> known;
    double pause = kFirstPause;
    looked_ = clock_.monotonic_seconds();
    while (results.size() < jobs.size()) {
      TS_ASSIGN_OR_RETURN(const bool some, ask(jobs, results.size(), known));
      bool go_on = !gives_up(jobs);
      while (go_on && results.size() < jobs.size()) {
        const auto at = known.find(jobs[results.size()].key);
        if (at == known.end()) break;
        results.push_back(at->second);
        if (done && !done(results.size() - 1, results.back())) go_on = false;
      }
      if (!go_on) {
        TS_RETURN_IF_ERROR(withdraw(jobs, results.size()));
        // Callers that compare programs rely on a result for each candidate.
        if (!jobs.front().recorded) results.resize(jobs.size(), lost("cancelled"));
        return results;
      }
      if (results.size() == jobs.size()) break;
      pause = some ? kFirstPause : std::min(1.5 * pause, patience_.poll_s);
      if (auto status = wait(pause); !status.ok()) {
        TS_RETURN_IF_ERROR(withdraw(jobs, results.size()));
        return std::move(status).error();
      }
    }
    return results;
  }

  double waited_seconds() const override { return waited_; }

 private:
  Result<std::vector<record::Job>> jobs_of(const ir::Workload& workload,
                                           std::span<const MeasureRequest> candidates, double best_seconds) {
    record::Record record;
    record.task_key = ir::structural_key(workload);
    record.device_key = device_key_;
    record.settings = settings_;
    // Tasks of real searches have been described before; this covers the others.
    if (task_key_ != record.task_key)
      TS_RETURN_IF_ERROR(database_.add_task({record.task_key, ir::print(workload), "", 0}));
    task_key_ = record.task_key;
    std::vector<record::Job> jobs;
    for (const MeasureRequest& candidate : candidates) {
      record::Job job;
      record.trace = sched::print(candidate.trace);
      job.key = record.key();
      job.recorded = !(candidate.what == record::CandidateOrigin());
      if (job.recorded) {
        // A program that the database already has is requested in order to be measured again, which
        // makes no second record, unless the existing record is the fresh answer of another
        // requester's job.
        TS_ASSIGN_OR_RETURN(const auto there, database_.find(job.key));
        if (there) {
          int64_t missing = 0;
          TS_ASSIGN_OR_RETURN(const auto answers, fleet_->answers({job.key}, missing));
          job.recorded = !answers.empty() && answers.front().record && answers.front().record->result.ok();
        }
      }
      if (!job.recorded) job.key += again();
      job.task_key = record.task_key;
      job.device_key = device_key_;
      job.settings = settings_;
      job.trace = record.trace;
      job.candidate = candidate.what;
      job.protocol = protocol_;
      job.best_seconds = best_seconds;
      jobs.push_back(std::move(job));
    }
    return jobs;
  }

  // Returns a suffix that makes the key of a job without a record unique.
  std::string again() {
    Hasher hasher;
    hasher.add(::getpid()).add(clock_.unix_milliseconds());
    hasher.add(reinterpret_cast<uintptr_t>(this)).add(++again_);
    return "-again-" + hasher.hex128();
  }

  static MeasureResult lost(std::string reason) {
    MeasureResult result;
    result.outcome = record::Outcome::kWorkerLost;
    result.reason = std::move(reason);
    return result;
  }

  // Whether a cancelled run stops waiting. Comparisons of programs get some more time, since they
  // are about to finish.
  bool gives_up(const std::vector<record::Job>& jobs) {
    if (!cancel_) return false;
    if (jobs.front().recorded) return true;
    if (cancelled_since_ == 0) cancelled_since_ = clock_.monotonic_seconds();
    return clock_.monotonic_seconds() - cancelled_since_ > kCancelledSeconds;
  }

  // Polls the answers; true if some arrived.
  Result<bool> ask(const std::vector<record::Job>& jobs, size_t first,
                   std::map<std::string, MeasureResult>& known) {
    std::vector<std::string> keys;
    for (size_t i = first; i < jobs.size(); ++i)
      if (known.count(jobs[i].key) == 0) keys.push_back(jobs[i].key);
    if (keys.empty()) return true;
    int64_t missing = 0;
    TS_ASSIGN_OR_RETURN(auto answers, fleet_->answers(keys, missing));
    for (record::JobAnswer& answer : answers) {
      known[answer.key] = answer.record ? std::move(answer.record->result) : lost(answer.reason);
    }
    // Another requester of the same jobs has withdrawn them.
    if (missing > 0) TS_RETURN_IF_ERROR(fleet_->post(jobs));
    return !answers.empty();
  }

  Status withdraw(const std::vector<record::Job>& jobs, size_t first) {
    std::vector<std::string> keys;
    for (size_t i = first; i < jobs.size(); ++i) keys.push_back(jobs[i].key);
    return fleet_->withdraw(keys);
  }

  Status wait(double pause) {
    if (help_) {
      TS_ASSIGN_OR_RETURN(const bool helped, help_());
      if (helped) return {};
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    return look_for_workers();
  }

  Status look_for_workers() {
    const double now = clock_.monotonic_seconds();
    if (now - looked_ < kLookForWorkersSeconds) return {};
    TS_ASSIGN_OR_RETURN(const int64_t workers,
                        fleet_->workers(device_key_, settings_.threads, kSilentWorkerSeconds));
    if (workers > 0) {
      alone_since_ = 0;
    } else {
      if (alone_since_ == 0) {
        alone_since_ = looked_;
        log_.log(LogLevel::kWarning,
                 "no worker measures programs for this device (" + device_key_ + ", " +
                     std::to_string(settings_.threads) +
                     " threads); start `tensorsmith worker --db ...` on a machine with this device");
      }
      waited_ += now - looked_;
      if (now - alone_since_ > patience_.without_workers_s)
        return Error{ErrorCode::kTimeout, "fleet",
                     "no worker for this device was found within " +
                         std::to_string(static_cast<int>(patience_.without_workers_s)) +
                         " s; start `tensorsmith worker --db ...` and run this command again. The "
                         "measurements so far are kept"};
    }
    looked_ = now;
    return {};
  }

  std::unique_ptr<record::Fleet> fleet_;
  record::Database& database_;
  std::string device_key_;
  record::MeasureSettings settings_;
  std::string protocol_, task_key_;
  FleetPatience patience_;
  Help help_;
  const Clock& clock_;
  LogSink& log_;
  const std::atomic<bool>& cancel_;
  int64_t again_ = 0;
  double looked_ = 0, alone_since_ = 0, waited_ = 0, cancelled_since_ = 0;
};

// This machine as a member of the fleet for the duration of a run.
class Helper {
 public:
  Helper(const target::Device& device, std::vector<std::string> worker)
      : device_(device), worker_(std::move(worker)) {}

  Status start(const std::string& address, const Clock& clock, LogSink& log,
               const std::atomic<bool>& cancel) {
    TS_ASSIGN_OR_RETURN(tools_, make_worker_tools(device_, worker_, clock, log, cancel));
    WorkerOptions options;
    options.host = host_name();
    options.threads = device_.compute_units();
    TS_ASSIGN_OR_RETURN(member_, FleetMember::join(
                                     device_, options, tools_, [&] { return record::Fleet::open(address); },
                                     clock, log, cancel));
    return {};
  }
  Result<bool> help() { return member_->measure_some(); }

 private:
  target::Device device_;
  std::vector<std::string> worker_;
  WorkerTools tools_;
  std::unique_ptr<FleetMember> member_;
};

}  // namespace

std::unique_ptr<measure::Measurer> make_fleet_measurer(
    std::unique_ptr<record::Fleet> fleet, record::Database& database, const target::Device& device,
    const measure::MeasureOptions& options, const FleetPatience& patience, Help help, const Clock& clock,
    LogSink& log, const std::atomic<bool>& cancel) {
  return std::make_unique<FleetMeasurer>(std::move(fleet), database, device, options, patience,
                                         std::move(help), clock, log, cancel);
}

Result<std::unique_ptr<measure::Measurer>> make_run_measurer(const Where& where, record::Database& database,
                                                             const target::Device& device,
                                                             const measure::MeasureOptions& options,
                                                             const Clock& clock, LogSink& log,
                                                             const std::atomic<bool>& cancel) {
  if (!where.fleet && !record::is_database_address(where.database))
    return make_watched_measurer(device, options, where.worker, clock, log, cancel);
  TS_ASSIGN_OR_RETURN(auto fleet, record::Fleet::open(where.database));
  Help help;
  if (!where.fleet) {
    const auto helper = std::make_shared<Helper>(device, where.worker);
    TS_RETURN_IF_ERROR(helper->start(where.database, clock, log, cancel));
    help = [helper] { return helper->help(); };
  }
  return make_fleet_measurer(std::move(fleet), database, device, options, FleetPatience(), std::move(help),
                             clock, log, cancel);
}

}  // namespace tensorsmith::engine
