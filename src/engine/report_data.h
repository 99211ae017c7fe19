// What a report of tuning shows, as plain data. It is gathered from a database of records (report_records.h), compiled
// models (report_model.h), timings of peers (report_peers.h) and what a run knows of itself.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/speedup.h"
#include "record/record.h"
#include "target/target.h"

namespace tensorsmith::engine {

inline constexpr double kUnknownSeconds = std::numeric_limits<double>::infinity();

// A line that no kernel is above in a roofline plot: a rate of operations, or of bytes; the other one is 0.
struct ReportRoof {
  std::string name;
  double flops_per_second = 0;
  double bytes_per_second = 0;
  bool assumed = false;  // the device does not say it (target::with_assumed_rates)
};

// Where and how records were measured.
struct ReportSetup {
  std::string device_key;
  std::optional<target::Device> device;  // nothing: the database does not describe it
  record::MeasureSettings settings;
  std::vector<ReportRoof> roofs;
  Estimate estimate;  // of all its tasks, each called once
};

struct ReportRecord {
  double at_seconds = 0;  // Report's time
  double seconds = 0;     // median of the repeats; kUnknownSeconds where it failed
  record::Outcome outcome = record::Outcome::kOk;
  record::Reason reason = record::Reason::kUnstated;
  bool plausible = true;  // else faster than the device can be: it does not count
  std::string trace;      // sched::print
  std::optional<record::DesignPoint> point = {};
  int run = 0;  // after how many pauses it was measured
};

struct ReportFailure {
  record::Outcome outcome = record::Outcome::kOk;
  std::string reason;
  int64_t count = 0;
};

struct ReportDecisionValue {
  int64_t value = 0;  // a length, or the number of a category
  int64_t count = 0;  // of programs
  double best_seconds = 0, median_seconds = 0;
};

// A decision of a task's search; the shares are those of decision_importance.h.
struct ReportDecision {
  std::string name, role;
  double share = 0, chance = 0;
  std::vector<ReportDecisionValue> values;  // where it explains more than chance does
};

struct ReportImportance {
  int64_t programs = 0;
  std::vector<ReportDecision> decisions;  // the most important first
};

// A task on a setup.
struct ReportTask {
  std::string key, name;
  std::string text;  // ir::print of the workload; empty: the database does not describe the task
  size_t setup = 0;  // place in Report::setups
  double flops = 0;
  double bytes = 0;  // inputs and outputs, each element once
  double untuned_seconds = kUnknownSeconds;
  double best_seconds = kUnknownSeconds;
  std::optional<size_t> best;           // place in `records`
  std::string strategy;                 // that proposed the best; empty: none did
  std::string loops;                    // of the best, ir::print
  std::string no_loops_because;         // where `loops` is empty
  std::vector<ReportRecord> records;    // in the order of insertion
  std::vector<ReportFailure> failures;  // the most frequent first
  std::optional<ReportImportance> importance;
};

struct ReportPoint {
  double at_seconds = 0;
  double seconds = 0;
};

// A task's part of a model.
struct ReportModelTask {
  size_t task = 0;  // place in Report::tasks
  int calls = 1;
  // Of all calls during one run of the model; kUnknownSeconds where that was not timed.
  double untuned_in_model = kUnknownSeconds, tuned_in_model = kUnknownSeconds;
  bool kept_untuned = false;
};

// One call of a kernel in one run.
struct ReportKernel {
  std::string task;             // by name
  std::optional<size_t> place;  // in Report::tasks
  double begin_seconds = 0, seconds = 0;
  double flops = 0;
  double bytes = 0;  // of its buffers
};

struct ReportModel {
  std::string name, directory, device, tool_version;
  int threads = 0;  // it was tuned for; 0 = not tuned
  std::vector<ReportModelTask> tasks;
  // As the run found it that tuned the model; nothing where that did not run the whole model.
  std::optional<Speedup> end_to_end;
  Estimate estimate;
  std::vector<ReportPoint> best_so_far;
  // Of the compiled model, as timed for the report: by run. Empty: it was not run.
  std::vector<double> run_seconds;
  std::string not_run_because;
  // By call in the order of a run. Where the model ran, the run at the lower quartile of their times; else one after the other
  // with the times that its manifest has, 0 = not known.
  std::vector<ReportKernel> kernels;
  double kernels_run_seconds = 0;  // of that run, with what lies between the kernels; 0 = it was not run
  // Of the device that it ran on; as the records describe it, where they are of it.
  std::string ran_on_key;
  std::vector<ReportRoof> roofs;
};

struct ReportPeer {
  std::string model, peer;
  int threads = 0;
  double seconds = 0, peer_seconds = 0;  // ours and theirs
  double ratio = 0, low = 0, high = 0;   // theirs / ours, its 10th and 90th percentile
};

struct ReportPrediction {
  size_t task = 0;    // place in Report::tasks
  size_t record = 0;  // in its records
  double seconds = 0;
  double low_seconds = 0, high_seconds = 0;  // hold 90 %; 0 = not known
};

// Its time: seconds since the first record. What nobody measured in for more than a minute is left out.
struct Report {
  std::string title;
  std::vector<ReportSetup> setups;
  std::vector<ReportTask> tasks;
  // Of all tasks of a setup, each called once: by setup.
  std::vector<std::vector<ReportPoint>> best_so_far;
  std::vector<ReportModel> models;
  std::vector<ReportPeer> peers;
  std::string predictor;  // for people; empty: none was asked
  std::vector<ReportPrediction> predictions;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> settings;  // to reproduce it: name and value
};

}  // namespace tensorsmith::engine
