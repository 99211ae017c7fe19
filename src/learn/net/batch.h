// A batch of programs as the neural networks read it. A program has any number of leaves and steps,
// stored one after the other without padding. Batches are built from queries, so training and
// prediction read the same inputs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feature/program_summary.h"
#include "learn/latency/device_columns.h"
#include "learn/latency/queries.h"
#include "learn/net/statistics.h"
#include "learn/net/step_sequence.h"
#include "learn/training.h"

namespace tensorsmith::learn::net {

// The baseline, as log(seconds), that the network's output is added to, so that the network learns
// the deviation from it.
enum class BaseKind : uint8_t {
  kNone,      // none: the network predicts log(seconds) itself
  kFlops,     // the workload's operations at the device's peak rate
  kRoofline,  // learn/latency/roofline.h
};

enum class RowKind : uint8_t {
  kNone,
  kStores,  // rows of feature::extract_per_store, where an update replaces its init
  kLeaves,  // every leaf of the syntax tree
};

struct BatchOptions {
  RowKind rows = RowKind::kLeaves;
  bool steps = false;  // whether to read the steps of ProgramQuery::trace
  // Whether to read feature::ProgramSummary, which needs the trace; its roofline is then the base.
  bool summaries = false;
  StepOptions step_options;
  BaseKind base = BaseKind::kNone;
  std::vector<std::string> devices;  // names of the training devices; the index is the device's number
};

inline constexpr float kDeviceScale = 8;

// The programs of one feature::ProgramKind in a batch.
struct SummaryRows {
  std::vector<int64_t> places, structure;  // index in the batch; feature::WorkloadStructure
  // For each program: log(seconds / roofline) of each resource, at least kLeastResource, then the
  // columns; summary_width() values.
  std::vector<float> values;
};
inline constexpr float kLeastResource = -14;
int resource_count(feature::ProgramKind kind);
int summary_width(feature::ProgramKind kind);

// Scaling of the columns of a network's inputs.
struct InputScaling {
  ColumnScaling rows, steps;
  std::array<ColumnScaling, feature::kProgramKinds> summaries;
};

struct Batch {
  int64_t programs = 0;
  // Program p has the rows row_begin[p] to row_begin[p + 1]; programs + 1 entries.
  std::vector<int64_t> row_begin;
  std::vector<float> rows;         // feature::kPerStoreWidth values per row
  std::vector<int64_t> positions;  // by row: LeafFeatures::positions
  std::vector<int64_t> step_begin;
  std::vector<float> steps;     // StepOptions::width() values per step
  std::vector<int64_t> device;  // by program: index in BatchOptions::devices, -1 if it is not there
  // device_columns() / kDeviceScale, kDeviceColumns values per program. The scale is fixed, not
  // fitted: training data has few devices, and the values of an unseen device must stay close to
  // the range seen in training.
  std::vector<float> device_features;
  std::vector<double> base;  // by program: log(seconds), see BaseKind
  std::array<SummaryRows, feature::kProgramKinds> summaries;
  QuerySummarizer summarizer;  // kept from batch to batch

  // Labels by program; empty if programs are only predicted.
  std::vector<double> log_seconds;  // +inf for a failed program
  std::vector<float> trust;         // record::trust of the measurement
  std::vector<float> score;         // least seconds of the task / seconds; 0 for a failed program
  std::vector<int64_t> task;        // number of workload and device; programs are compared only within a task

  void clear();
  // Appends a program. After an error the batch must not be used; kInvalidArgument for a program
  // without leaves, or without a trace if one is read.
  Status add(const ProgramQuery& query, const BatchOptions& options);

 private:
  Status add_summary(const ProgramQuery& query);
};

}  // namespace tensorsmith::learn::net
