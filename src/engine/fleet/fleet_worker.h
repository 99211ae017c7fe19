// A worker of a fleet: takes jobs for this machine from a record database (record/fleet.h), measures
// them and adds their records.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "measure/measurer.h"
#include "measure/watched_measurer.h"
#include "record/database.h"
#include "record/fleet.h"

namespace tensorsmith::engine {

// The means by which a worker measures; tests substitute their own.
struct WorkerTools {
  std::function<Result<std::unique_ptr<measure::Measurer>>(const measure::MeasureOptions&)> measurer;
  measure::Canary canary;  // runs a program that must succeed on a sound machine; empty: no check
};
// The tools for this machine, from make_watched_measurer() and its canary; the arguments must
// outlive them.
Result<WorkerTools> make_worker_tools(const target::Device& device, const std::vector<std::string>& worker,
                                      const Clock& clock, LogSink& log, const std::atomic<bool>& cancel);

// Name of this host, as other hosts see it.
std::string host_name();

struct WorkerOptions {
  std::string host;
  int threads = 1;            // threads that programs run on
  double lease_seconds = 30;  // lease of a job; heartbeats are sent every third of it
  double idle_seconds = 0;    // ends after this long without a job; 0 = never
  size_t at_once = 4;         // jobs taken together, so that one builds while another runs
  bool release = false;       // lifts a quarantine of this host's device first
};

struct WorkerReport {
  int64_t measured = 0;  // results that were accepted
  int64_t late = 0;      // results that came after another worker had taken over the job
  bool interrupted = false;
};

using OpenFleet = std::function<Result<std::unique_ptr<record::Fleet>>()>;

// A worker that measures when told to, and sends heartbeats from a thread of its own.
class FleetMember {
 public:
  // kMismatch: this host's device is in quarantine. kIo with the canary's reason: the canary
  // failed, and this host's device is in quarantine from now on. Calls `open_fleet` twice, because
  // heartbeats use a connection of their own. All arguments but `device` and `options` must outlive
  // the member.
  static Result<std::unique_ptr<FleetMember>> join(const target::Device& device, const WorkerOptions& options,
                                                   const WorkerTools& tools, const OpenFleet& open_fleet,
                                                   const Clock& clock, LogSink& log,
                                                   const std::atomic<bool>& cancel);
  // Gives back the jobs that it has taken, and leaves the fleet.
  virtual ~FleetMember() = default;
  // Takes some jobs and measures them. False: no job waits for this device. kIo as in join() if
  // candidates and then the canary fail.
  virtual Result<bool> measure_some() = 0;
  virtual const WorkerReport& report() const = 0;
};

// Joins the fleet and measures until `cancel` is set or the worker was idle for too long.
Result<WorkerReport> run_worker(const target::Device& device, const WorkerOptions& options,
                                const WorkerTools& tools, record::Database& database,
                                const OpenFleet& open_fleet, const Clock& clock, LogSink& log,
                                const std::atomic<bool>& cancel);

}  // namespace tensorsmith::engine
