// Measures on other machines: candidates become jobs in the record database (record/fleet.h), which
// workers measure (fleet_worker.h).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "record/fleet.h"

namespace tensorsmith::engine {

// A worker that has been silent for longer than this counts as absent.
inline constexpr double kSilentWorkerSeconds = 90;

struct FleetPatience {
  double without_workers_s = 600;  // then the measurement fails with kTimeout
  double poll_s = 0.25;            // the longest pause between polls
};

// Measures some of the jobs that wait for this device; false: no job waits.
using Help = std::function<Result<bool>()>;

// Creates a measurer that posts jobs and waits for the answers. A candidate that becomes a record
// is in `database` when its result arrives. Time without any worker for the device counts as
// waited_seconds(), and ends in kTimeout after patience.without_workers_s. `help`, if not empty, is
// called instead of waiting, so that this machine measures too. All arguments but `options`,
// `patience` and `help` must outlive the measurer.
std::unique_ptr<measure::Measurer> make_fleet_measurer(
    std::unique_ptr<record::Fleet> fleet, record::Database& database, const target::Device& device,
    const measure::MeasureOptions& options, const FleetPatience& patience, Help help, const Clock& clock,
    LogSink& log, const std::atomic<bool>& cancel);

// The machines that measure the programs of a run.
struct Where {
  std::string database;             // address or path; all machines that measure for a server share the work
  bool fleet = false;               // only workers of the database measure, not this machine
  std::vector<std::string> worker;  // the command line of measure's worker processes
};

// Creates the measurer of a run. With a database file, this machine measures alone
// (make_watched_measurer). With a server, the run posts jobs as for a fleet and also measures
// waiting jobs itself, so that no two machines measure the same program.
Result<std::unique_ptr<measure::Measurer>> make_run_measurer(const Where& where, record::Database& database,
                                                             const target::Device& device,
                                                             const measure::MeasureOptions& options,
                                                             const Clock& clock, LogSink& log,
                                                             const std::atomic<bool>& cancel);

}  // namespace tensorsmith::engine
