// Training data for cost models: programs of many tasks, measured on variants of this machine.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sinks.h"
#include "engine/load_model.h"
#include "learn/search_model.h"
#include "record/database.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct CollectOptions {
  std::vector<target::Device> devices;  // this machine and variants of it
  int64_t records = 0;                  // measurements in all; 0 = as many as per_task says
  double seconds = 0;                   // for measuring; 0 = no limit
  int64_t per_task = 48;                // programs of each task and device
  int batch = 24;                       // programs of a task in one turn
  double slowest_seconds = .05;         // tasks whose untuned schedule takes longer get no further ones
  uint64_t seed = 0;
  learn::SearchModelOptions cost_model;  // its seed and threads follow from the other options
  int threads = 1;                       // of the search
  std::vector<std::string> worker;       // the command line of measure's worker processes
  // The database's address or path, and whether its workers measure, not this machine (engine/fleet_measurer.h).
  std::string database_path;
  bool fleet = false;
};

struct CollectReport {
  int64_t trials = 0;   // measured by this call
  int64_t resumed = 0;  // found in the database
  double elapsed_seconds = 0;
  bool interrupted = false;
};

class CollectEvents {
 public:
  virtual ~CollectEvents() = default;
  // After every measurement; device: its place in the options; before: what was collected before its
  // present turn.
  virtual void progress(size_t /*device*/, const CollectReport& /*before*/, const search::TuneProgress&) {}
};

// Tasks of all networks, deduplicated, each with weight 1.
Result<std::vector<search::TuneTask>> collection_tasks(const std::vector<ModelSource>& networks);

// Devices take turns, each a batch of every task before the first gets its second. What the database holds is
// not measured again. kUnsupported for a device that is not local.
Result<CollectReport> collect(const std::vector<search::TuneTask>& tasks, const CollectOptions& options,
                              record::Database& database, const Clock& clock, LogSink& log,
                              CollectEvents& events, const std::atomic<bool>& cancel);

}  // namespace tensorsmith::engine
