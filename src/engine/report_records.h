// The part of a report that a database tells.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/load_model.h"
#include "engine/report_data.h"
#include "engine/tune_model.h"
#include "record/database.h"

namespace tensorsmith::engine {

// Loops of schedules by task and trace, so that a report that is made again does not lower them again.
using ReportLoops = std::map<std::pair<std::string, std::string>, std::pair<std::string, std::string>>;

struct ReportFilter {
  std::optional<std::set<std::string>> tasks = {};  // by key: only these
  std::optional<std::string> device_key = {};       // only records of it, which were measured so:
  record::MeasureSettings settings = {};            // counts with device_key only
};

// Setups, tasks with all records of the current code version, and the curves of the setups; the rest of the report
// stays. A task is of the report where it has a record. loops: may be null. Errors: those of the database.
Status add_records(record::Database& database, const ReportFilter& filter, ReportLoops* loops,
                   Report& report);

// The sum over tasks of calls * fastest so far, where it changes, from 0 on to the last record. tasks: places in
// report.tasks with calls. A task counts with its untuned seconds until a faster program ran, without these with the
// first that ran; one of which none ran is left out.
std::vector<ReportPoint> best_so_far(const Report& report, const std::vector<std::pair<size_t, int>>& tasks);

// The device's peak and the bandwidths of its memories, the highest first.
std::vector<ReportRoof> roofs_of(const target::Device& device);

// Sets the model's tasks and curve, and its estimate if it has none, to what the report's records say of its kernels, which
// know names and work only: of several such tasks it is the one whose best program takes about as long as the kernel.
void connect_records(const Report& report, ReportModel& model);
// The same of a model that a run tunes, whose tasks are known by their keys. tuned: what the run found, with its speed-up;
// null while it goes on. progress: where the run is then; null before the first measurement.
void connect_run(const Report& report, const LoadedModel& loaded, const TunedModel* tuned,
                 const search::TuneProgress* progress, ReportModel& model);

}  // namespace tensorsmith::engine
