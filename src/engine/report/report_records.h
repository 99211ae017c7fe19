// Adds a database's records to a report.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/load_model.h"
#include "engine/report/report_data.h"
#include "engine/tune/tune_model.h"
#include "record/database.h"

namespace tensorsmith::engine {

// Printed loops of schedules by task and trace, so that an updated report does not lower them
// again.
using ReportLoops = std::map<std::pair<std::string, std::string>, std::pair<std::string, std::string>>;

struct ReportFilter {
  std::optional<std::set<std::string>> tasks = {};  // by key: only these tasks
  std::optional<std::string> device_key = {};       // only records of this device,
  record::MeasureSettings settings = {};            // measured with these settings; used only with device_key
};

// Adds setups, tasks with all records of the current code version, and the curves of the setups;
// keeps the rest of the report. A task is included if it has a record. `loops` may be null. Errors:
// those of the database.
Status add_records(record::Database& database, const ReportFilter& filter, ReportLoops* loops,
                   Report& report);

// Returns the sum over tasks of calls * fastest seconds so far, at each change from 0 to the last
// record. `tasks` are indices into report.tasks with numbers of calls. A task counts with its
// untuned seconds until a faster program ran; if these are unknown, with its first program that
// ran; a task of which no program ran is left out.
std::vector<ReportPoint> best_so_far(const Report& report, const std::vector<std::pair<size_t, int>>& tasks);

// Returns the device's peak rate and its memories' bandwidths, the highest first.
std::vector<ReportRoof> roofs_of(const target::Device& device);

// Sets the model's tasks and curve, and its estimate if it has none, from the report's records of
// its kernels. Kernels have only names and amounts of work; among several matching tasks, the one
// is chosen whose best program takes about as long as the kernel.
void connect_records(const Report& report, ReportModel& model);
// As connect_records(), for a model being tuned, whose tasks are identified by key. `tuned` is the
// result of the run with its speed-up, or null during the run. `progress` is the current state of
// the run, or null before the first measurement.
void connect_run(const Report& report, const LoadedModel& loaded, const TunedModel* tuned,
                 const search::TuneProgress* progress, ReportModel& model);

}  // namespace tensorsmith::engine
