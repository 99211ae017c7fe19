// Contents of a tuning report, as plain data. They come from a database of records
// (report_records.h), compiled models (report_model.h), timings of other engines (report_peers.h)
// and the tuning run.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/report/speedup.h"
#include "record/record.h"
#include "target/target.h"

namespace tensorsmith::engine {

inline constexpr double kUnknownSeconds = std::numeric_limits<double>::infinity();

// An upper bound line of a roofline plot: a rate of operations or of bytes; the other rate is 0.
struct ReportRoof {
  std::string name;
  double flops_per_second = 0;
  double bytes_per_second = 0;
  bool assumed = false;  // the device does not state the rate (target::with_assumed_figures)
};

// Device and settings that records were measured with.
struct ReportSetup {
  std::string device_key;
  std::optional<target::Device> device;  // nullopt: the database does not describe the device
  record::MeasureSettings settings;
  std::vector<ReportRoof> roofs;
  Estimate estimate;  // of all tasks of the setup, each called once
};

struct ReportRecord {
  double at_seconds = 0;  // in the report's time, see Report
  double seconds = 0;     // median of the repeats; kUnknownSeconds if it failed
  record::Outcome outcome = record::Outcome::kOk;
  record::Reason reason = record::Reason::kUnstated;
  bool plausible = true;  // false: faster than the device can be, so the record does not count
  std::string trace;      // sched::print
  std::optional<record::DesignPoint> point = {};
  int run = 0;                             // number of pauses before it was measured
  std::optional<double> disturbance = {};  // while it was measured (record/disturbance.h)
};

struct ReportFailure {
  record::Outcome outcome = record::Outcome::kOk;
  std::string reason;
  int64_t count = 0;
};

struct ReportDecisionValue {
  int64_t value = 0;  // a length, or the number of a category
  int64_t count = 0;  // number of programs
  double best_seconds = 0, median_seconds = 0;
};

// A decision of a task's search with its shares, see decision_importance.h.
struct ReportDecision {
  std::string name, role;
  double share = 0, chance = 0;
  std::vector<ReportDecisionValue> values;  // only if the decision explains more than chance
};

struct ReportImportance {
  int64_t programs = 0;
  std::vector<ReportDecision> decisions;  // most important first
};

// A task measured on one setup.
struct ReportTask {
  std::string key, name;
  std::string text;  // ir::print of the workload; empty: the database does not describe the task
  size_t setup = 0;  // index into Report::setups
  double flops = 0;
  double bytes = 0;  // inputs and outputs, each element counted once
  double untuned_seconds = kUnknownSeconds;
  double best_seconds = kUnknownSeconds;
  std::optional<size_t> best;           // index into `records`
  std::string strategy;                 // that proposed the best program; empty: none
  std::string loops;                    // of the best program, ir::print
  std::string no_loops_because;         // why `loops` is empty
  std::vector<ReportRecord> records;    // in insertion order
  std::vector<ReportFailure> failures;  // most frequent first
  std::optional<ReportImportance> importance;
};

struct ReportPoint {
  double at_seconds = 0;
  double seconds = 0;
};

// A task as part of a model.
struct ReportModelTask {
  size_t task = 0;  // index into Report::tasks
  int calls = 1;
  // Time of all calls during one run of the model; kUnknownSeconds if the model was not timed.
  double untuned_in_model = kUnknownSeconds, tuned_in_model = kUnknownSeconds;
  bool kept_untuned = false;
};

// One call of a kernel in one run.
struct ReportKernel {
  std::string task;             // by name
  std::optional<size_t> place;  // index into Report::tasks
  double begin_seconds = 0, seconds = 0;
  double flops = 0;
  double bytes = 0;  // of its buffers
};

struct ReportModel {
  std::string name, directory, device, tool_version;
  int threads = 0;  // that it was tuned for; 0 = not tuned
  std::vector<ReportModelTask> tasks;
  // As measured by the run that tuned the model; nullopt if that run did not time the whole model.
  std::optional<Speedup> end_to_end;
  Estimate estimate;
  std::vector<ReportPoint> best_so_far;
  // Times of the compiled model's runs for this report. Empty: it was not run.
  std::vector<double> run_seconds;
  std::string not_run_because;
  // By call in run order. If the model ran, from the run at the lower quartile of the run times;
  // otherwise the calls one after another with the times of its manifest, 0 = not known.
  std::vector<ReportKernel> kernels;
  double kernels_run_seconds = 0;  // of that run, including the gaps between kernels; 0 = not run
  // Key of the device that the model ran on, and its roofs; those of a report setup if it is the
  // same device.
  std::string ran_on_key;
  std::vector<ReportRoof> roofs;
};

struct ReportPeer {
  std::string model, peer;
  int threads = 0;
  double seconds = 0, peer_seconds = 0;  // of our model and of the peer
  double ratio = 0, low = 0, high = 0;   // peer / ours, with its 10th and 90th percentile
};

struct ReportPrediction {
  size_t task = 0;    // index into Report::tasks
  size_t record = 0;  // index into the task's records
  double seconds = 0;
  double low_seconds = 0, high_seconds = 0;  // 90 % interval; 0 = not known
};

// Times are seconds since the first record, without pauses of more than a minute between records.
struct Report {
  std::string title;
  std::vector<ReportSetup> setups;
  std::vector<ReportTask> tasks;
  // Over all tasks of a setup, each called once; indexed by setup.
  std::vector<std::vector<ReportPoint>> best_so_far;
  std::vector<ReportModel> models;
  std::vector<ReportPeer> peers;
  std::string predictor;  // display text; empty: no model was asked
  std::vector<ReportPrediction> predictions;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> settings;  // to reproduce the results: name and value
};

}  // namespace tensorsmith::engine
