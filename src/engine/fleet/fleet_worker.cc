#include "engine/fleet/fleet_worker.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "base/hash.h"
#include "engine/device/measured_device.h"
#include "engine/fleet/measure_protocol.h"
#include "engine/tune/watched_machine.h"
#include "ir/text.h"

namespace tensorsmith::engine {

namespace {

using record::Job;
using record::MeasureResult;

constexpr double kFirstLookPause = 0.05, kLongestPause = 1;  // pauses between polls for jobs
constexpr int kMaxLostWorkers = 8;  // consecutive measurements without a worker process
// Measurers kept, by protocol and settings; each has processes of its own.
constexpr size_t kKeptMeasurers = 2;

// Sends heartbeats from a thread of its own.
class Heart {
 public:
  Heart(record::Fleet& fleet, const record::FleetWorker& worker, double lease_seconds, const Clock& clock,
        LogSink& log)
      : fleet_(fleet), worker_(worker), lease_seconds_(lease_seconds), clock_(clock), log_(log) {
    last_ = clock_.monotonic_seconds();
    thread_ = std::thread([this] { beat(); });
  }
  ~Heart() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Heart(const Heart&) = delete;
  Heart& operator=(const Heart&) = delete;

  // Jobs requested at time `asked` and then taken belong to this worker for a whole lease.
  void took(double asked) { last_ = std::max(last_.load(), asked); }
  // Whether the jobs taken still belong to this worker, as far as it can know.
  bool in_time() const { return clock_.monotonic_seconds() - last_ < lease_seconds_; }

 private:
  void beat() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::duration<double>(lease_seconds_ / 3),
                              [&] { return stopping_; })) {
      lock.unlock();
      const double asked = clock_.monotonic_seconds();
      const Status status = fleet_.beat(worker_, lease_seconds_);
      if (status.ok()) {
        last_ = asked;
      } else {
        log_.log(LogLevel::kWarning, status.error().message());
      }
      lock.lock();
    }
  }

  record::Fleet& fleet_;
  const record::FleetWorker& worker_;
  double lease_seconds_;
  const Clock& clock_;
  LogSink& log_;
  std::atomic<double> last_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

std::string unique_name(const std::string& host) {
  std::random_device entropy;
  Hasher hasher;
  for (int i = 0; i < 4; ++i) hasher.add(entropy());
  return host + ":" + std::to_string(::getpid()) + ":" + hasher.hex128().substr(0, 12);
}

class Member final : public FleetMember {
 public:
  Member(const target::Device& device, const WorkerOptions& options, const WorkerTools& tools,
         std::unique_ptr<record::Fleet> fleet, std::unique_ptr<record::Fleet> heart_fleet, const Clock& clock,
         LogSink& log, const std::atomic<bool>& cancel)
      : options_(options),
        tools_(tools),
        fleet_(std::move(fleet)),
        heart_fleet_(std::move(heart_fleet)),
        clock_(clock),
        log_(log),
        cancel_(cancel),
        self_{unique_name(options.host), options.host, device.key(), options.threads} {}
  ~Member() override {
    if (heart_ == nullptr) return;
    heart_.reset();
    if (const Status left = fleet_->leave(self_); !left.ok())
      log_.log(LogLevel::kWarning, left.error().message());
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Status begin() {
    if (options_.release) TS_RETURN_IF_ERROR(fleet_->release(self_));
    TS_RETURN_IF_ERROR(fleet_->join(self_));
    heart_ = std::make_unique<Heart>(*heart_fleet_, self_, options_.lease_seconds, clock_, log_);
    if (!tools_.canary) return {};
    const auto canary = tools_.canary();
    if (canary.ok()) return {};
    return quarantine("the test program, which is known to be correct, failed: " + canary.error().message());
  }

  Result<bool> measure_some() override {
    const double asked = clock_.monotonic_seconds();
    TS_ASSIGN_OR_RETURN(const auto jobs, fleet_->take(self_, options_.at_once, options_.lease_seconds));
    if (jobs.empty()) return false;
    heart_->took(asked);
    TS_RETURN_IF_ERROR(measure(jobs));
    return true;
  }

  const WorkerReport& report() const override { return report_; }

 private:
  record::Record record_of(const Job& job, const MeasureResult& result) const {
    record::Record record;
    record.task_key = job.task_key;
    record.device_key = job.device_key;
    record.settings = job.settings;
    record.trace = job.trace;
    record.result = result;
    record.candidate = job.candidate;
    record.unix_ms = clock_.unix_milliseconds();
    return record;
  }

  Status finish(const Job& job, const MeasureResult& result, int64_t next) {
    TS_ASSIGN_OR_RETURN(const bool kept, fleet_->finish(self_, job, record_of(job, result), next));
    ++(kept ? report_.measured : report_.late);
    return {};
  }

  // Measures jobs, all of one task and protocol.
  Status measure(const std::vector<Job>& jobs) {
    auto workload = ir::parse_workload(jobs.front().task_text);
    auto options = parse_protocol(jobs.front().protocol);
    std::vector<measure::MeasureRequest> candidates;
    std::vector<const Job*> measured;
    for (size_t i = 0; i < jobs.size(); ++i) {
      auto trace = sched::parse_trace(jobs[i].trace);
      const std::string problem = !workload.ok()  ? workload.error().message()
                                  : !options.ok() ? options.error().message()
                                  : !trace.ok()   ? trace.error().message()
                                                  : std::string();
      if (problem.empty()) {
        candidates.push_back({std::move(trace).value(), jobs[i].candidate});
        measured.push_back(&jobs[i]);
        continue;
      }
      // For example, a job from a newer version. This says nothing about the candidate, so it makes
      // no record.
      MeasureResult result;
      result.outcome = record::Outcome::kWorkerLost;
      result.reason = "the worker cannot read the job: " + problem;
      Job unread = jobs[i];
      unread.recorded = false;
      TS_RETURN_IF_ERROR(finish(unread, result, 0));
    }
    if (candidates.empty()) return {};
    options->flush_cache = jobs.front().settings.flush_cache;
    TS_ASSIGN_OR_RETURN(measure::Measurer * measurer, measurer_of(jobs.front().protocol, *options));
    Status stored;
    bool lost = false;
    const auto done = [&](size_t i, const MeasureResult& result) {
      if (result.outcome == record::Outcome::kWorkerLost) {
        // Not the candidate's fault, so the job is measured again.
        log_.log(LogLevel::kWarning, result.reason);
        lost = true;
        return false;
      }
      lost_ = 0;
      stored = finish(*measured[i], result, i + 1 < measured.size() ? measured[i + 1]->id : 0);
      return stored.ok() && !cancel_ && heart_->in_time();
    };
    const auto results = measurer->measure(*workload, candidates, jobs.front().best_seconds, done);
    TS_RETURN_IF_ERROR(stored);
    if (!results.ok()) return failed(results.error());
    if (lost && ++lost_ >= kMaxLostWorkers)
      return Error{
          ErrorCode::kIo, "measuring",
          "the last " + std::to_string(lost_) +
              " measurements failed because no worker process could be started; see the log for the reason"};
    // Jobs that were not measured are left for the next worker.
    return results->size() < candidates.size() || lost ? fleet_->give_back(self_, !lost) : Status();
  }

  Status failed(const Error& error) {
    if (tools_.canary && !tools_.canary().ok()) return quarantine(error.message());
    return error;
  }

  Error quarantine(const std::string& reason) {
    const Status told = fleet_->quarantine(self_, reason);
    if (!told.ok()) log_.log(LogLevel::kWarning, told.error().message());
    return {ErrorCode::kIo, "device of " + self_.host,
            "does not work properly and is in quarantine (" + reason +
                "); when it is repaired, start the worker with --release"};
  }

  Result<measure::Measurer*> measurer_of(const std::string& protocol,
                                         const measure::MeasureOptions& options) {
    const std::string key = protocol + (options.flush_cache ? " cold" : "");
    auto at =
        std::find_if(measurers_.begin(), measurers_.end(), [&](const auto& m) { return m.first == key; });
    if (at == measurers_.end()) {
      TS_ASSIGN_OR_RETURN(auto made, tools_.measurer(options));
      if (measurers_.size() >= kKeptMeasurers) measurers_.erase(measurers_.begin());
      at = measurers_.emplace(measurers_.end(), key, std::move(made));
    }
    return at->second.get();
  }

  const WorkerOptions options_;
  const WorkerTools& tools_;
  std::unique_ptr<record::Fleet> fleet_, heart_fleet_;
  const Clock& clock_;
  LogSink& log_;
  const std::atomic<bool>& cancel_;
  record::FleetWorker self_;
  std::unique_ptr<Heart> heart_;  // null until the worker has joined
  std::vector<std::pair<std::string, std::unique_ptr<measure::Measurer>>> measurers_;
  WorkerReport report_;
  int lost_ = 0;
};

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

Result<WorkerTools> make_worker_tools(const target::Device& device, const std::vector<std::string>& worker,
                                      const Clock& clock, LogSink& log, const std::atomic<bool>& cancel) {
  WorkerTools tools;
  tools.measurer = [&](const measure::MeasureOptions& options) {
    return make_watched_measurer(device, options, worker, clock, log, cancel);
  };
  TS_ASSIGN_OR_RETURN(tools.canary, make_machine_canary(device, {}, worker, log));
  return tools;
}

Result<std::unique_ptr<FleetMember>> FleetMember::join(const target::Device& device,
                                                       const WorkerOptions& options, const WorkerTools& tools,
                                                       const OpenFleet& open_fleet, const Clock& clock,
                                                       LogSink& log, const std::atomic<bool>& cancel) {
  TS_ASSIGN_OR_RETURN(auto fleet, open_fleet());
  TS_ASSIGN_OR_RETURN(auto heart_fleet, open_fleet());
  auto member = std::make_unique<Member>(device, options, tools, std::move(fleet), std::move(heart_fleet),
                                         clock, log, cancel);
  TS_RETURN_IF_ERROR(member->begin());
  return std::unique_ptr<FleetMember>(std::move(member));
}

Result<WorkerReport> run_worker(const target::Device& device, const WorkerOptions& options,
                                const WorkerTools& tools, record::Database& database,
                                const OpenFleet& open_fleet, const Clock& clock, LogSink& log,
                                const std::atomic<bool>& cancel) {
  TS_RETURN_IF_ERROR(register_device(device, database));
  TS_ASSIGN_OR_RETURN(const auto member,
                      FleetMember::join(device, options, tools, open_fleet, clock, log, cancel));
  double pause = kFirstLookPause, idle_since = clock.monotonic_seconds();
  while (!cancel) {
    TS_ASSIGN_OR_RETURN(const bool some, member->measure_some());
    const double now = clock.monotonic_seconds();
    if (some) {
      pause = kFirstLookPause;
      idle_since = now;
      continue;
    }
    if (options.idle_seconds > 0 && now - idle_since >= options.idle_seconds) break;
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    pause = std::min(2 * pause, kLongestPause);
  }
  WorkerReport report = member->report();
  report.interrupted = cancel;
  return report;
}

}  // namespace tensorsmith::engine
