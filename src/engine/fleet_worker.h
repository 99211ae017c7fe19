// A worker of a fleet: takes jobs for this machine from a record database (record/fleet.h), measures them and adds their
// records.
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

// How a worker measures; tests measure with others.
struct WorkerTools {
  std::function<Result<std::unique_ptr<measure::Measurer>>(const measure::MeasureOptions&)> measurer;
  measure::Canary canary;  // a program that is known to run on a sound machine; empty: there is none
};
// Of this machine, with make_watched_measurer() and its canary; the arguments outlive them.
Result<WorkerTools> make_worker_tools(const target::Device& device, const std::vector<std::string>& worker,
                                      const Clock& clock, LogSink& log, const std::atomic<bool>& cancel);

// Of this machine, as others see it.
std::string host_name();

struct WorkerOptions {
  std::string host;
  int threads = 1;            // that programs run on
  double lease_seconds = 30;  // for which jobs are taken; a third of it lies between signs of life
  double idle_seconds = 0;    // ends after so long without a job; 0 = never
  size_t at_once = 4;         // jobs that are taken together, so that one builds while another runs
  bool release = false;       // lifts a quarantine first
};

struct WorkerReport {
  int64_t measured = 0;  // results that counted
  int64_t late = 0;      // results that came after another worker had the job
  bool interrupted = false;
};

using OpenFleet = std::function<Result<std::unique_ptr<record::Fleet>>()>;

// A worker that measures when it is told to, and gives signs of life from a thread of its own.
class FleetMember {
 public:
  // kMismatch: this host's device is in quarantine. kIo with the canary's reason: the canary fails; the device of this host
  // is in quarantine now. open_fleet is called twice: signs of life have a connection of their own. All but device and
  // options outlive the member.
  static Result<std::unique_ptr<FleetMember>> join(const target::Device& device, const WorkerOptions& options,
                                                   const WorkerTools& tools, const OpenFleet& open_fleet,
                                                   const Clock& clock, LogSink& log,
                                                   const std::atomic<bool>& cancel);
  // Gives back what it has taken, and leaves.
  virtual ~FleetMember() = default;
  // Takes some jobs and measures them. False: nothing waits for this device. kIo as of join(), where candidates and then
  // the canary fail.
  virtual Result<bool> measure_some() = 0;
  virtual const WorkerReport& report() const = 0;
};

// A member that measures until `cancel`, or until idle.
Result<WorkerReport> run_worker(const target::Device& device, const WorkerOptions& options,
                                const WorkerTools& tools, record::Database& database,
                                const OpenFleet& open_fleet, const Clock& clock, LogSink& log,
                                const std::atomic<bool>& cancel);

}  // namespace tensorsmith::engine
