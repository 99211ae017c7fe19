// Measuring on other machines: candidates become jobs in the record database (record/fleet.h), workers measure them
// (fleet_worker.h).
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

// A worker that was silent for so long is not counted on.
inline constexpr double kSilentWorkerSeconds = 90;

struct FleetPatience {
  double without_workers_s = 600;  // then it is an error
  double poll_s = 0.25;            // the longest pause between questions
};

// Measures some of what waits for this device; false: nothing does.
using Help = std::function<Result<bool>()>;

// Posts what it is asked to measure and waits for the answers; a candidate that becomes a record has it in `database` when
// its result comes. Time without any worker for the device is waited_seconds(). kTimeout where that lasts. All but
// `options`, `patience` and `help` outlive the measurer. help: called instead of waiting, where this machine measures, too.
std::unique_ptr<measure::Measurer> make_fleet_measurer(
    std::unique_ptr<record::Fleet> fleet, record::Database& database, const target::Device& device,
    const measure::MeasureOptions& options, const FleetPatience& patience, Help help, const Clock& clock,
    LogSink& log, const std::atomic<bool>& cancel);

// Where a run measures.
struct Where {
  std::string database;             // address or path; of a server, whoever measures for it shares the work
  bool fleet = false;               // only on its workers, not here
  std::vector<std::string> worker;  // the command line of measure's worker processes
};

// What a run measures with. With a file this machine alone (make_watched_measurer). With a server it posts jobs as with a
// fleet and measures what waits, so that no two machines measure the same.
Result<std::unique_ptr<measure::Measurer>> make_run_measurer(const Where& where, record::Database& database,
                                                             const target::Device& device,
                                                             const measure::MeasureOptions& options,
                                                             const Clock& clock, LogSink& log,
                                                             const std::atomic<bool>& cancel);

}  // namespace tensorsmith::engine
