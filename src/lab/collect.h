// Training data for cost models: programs of many tasks, measured on variants of this machine.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sinks.h"
#include "engine/fleet/fleet_measurer.h"
#include "engine/model/load_model.h"
#include "learn/search_model.h"
#include "record/database.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::lab {

struct CollectOptions {
  std::vector<target::Device> devices;  // this machine and its variants
  int64_t records = 0;                  // measurements in all; 0 = no limit but per_task
  double seconds = 0;                   // time limit for measuring; 0 = no limit
  int64_t per_task = 48;                // programs per task and device
  int batch = 24;                       // programs of a task measured in one turn
  double slowest_seconds = .05;         // a task whose untuned schedule takes longer gets no further programs
  uint64_t seed = 0;
  learn::SearchModelOptions cost_model;  // its seed and threads are set from the other options
  int threads = 1;                       // threads of the search
  engine::Where where;
};

struct CollectReport {
  int64_t trials = 0;   // measurements made by this call
  int64_t resumed = 0;  // measurements found in the database
  double elapsed_seconds = 0;
  bool interrupted = false;
};

class CollectEvents {
 public:
  virtual ~CollectEvents() = default;
  // Called after every measurement. `device` is an index into CollectOptions::devices; `before` is
  // the report before the current turn.
  virtual void progress(size_t /*device*/, const CollectReport& /*before*/, const search::TuneProgress&) {}
};

// Measures in turns: every device gets a batch of every task before the next round of batches.
// Programs that the database already has are not measured again. kUnsupported for a device that is
// not local.
Result<CollectReport> collect(const std::vector<engine::SharedTask>& tasks, const CollectOptions& options,
                              record::Database& database, const Clock& clock, LogSink& log,
                              CollectEvents& events, const std::atomic<bool>& cancel);

}  // namespace tensorsmith::lab
