// Programs as the nets read them: any number of leaves and steps a program, one after the other without
// padding. Made of queries, so that training and prediction read the same.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feature/program_summary.h"
#include "learn/latency/device_columns.h"
#include "learn/latency/tensorsmith_model.h"
#include "learn/net/statistics.h"
#include "learn/net/step_sequence.h"
#include "learn/training.h"

namespace tensorsmith::learn::net {

// What a net's output is added to, as log(seconds), so that it learns how far a program is from there.
enum class BaseKind : uint8_t {
  kNone,      // nothing: the net predicts seconds themselves
  kFlops,     // the workload's operations at the device's peak
  kRoofline,  // learn/latency/roofline.h
};

enum class RowKind : uint8_t {
  kNone,
  kStores,  // rows of feature::extract_per_store: an update overwrites its init
  kLeaves,  // every leaf of the syntax tree
};

struct BatchOptions {
  RowKind rows = RowKind::kLeaves;
  bool steps = false;      // needs ProgramQuery::trace
  bool summaries = false;  // feature::ProgramSummary; likewise. The base is the summary's roofline then
  StepOptions step_options;
  BaseKind base = BaseKind::kNone;
  std::vector<std::string> devices;  // trained on, by name; their places number them
};

inline constexpr float kDeviceScale = 8;

// The programs of one feature::ProgramKind in a batch.
struct SummaryRows {
  std::vector<int64_t> places, structure;  // number in the batch; feature::WorkloadStructure
  // log(seconds / roofline) of each resource, at least kLeastResource, then the columns: summary_width() a program.
  std::vector<float> values;
};
inline constexpr float kLeastResource = -14;
int resource_count(feature::ProgramKind kind);
int summary_width(feature::ProgramKind kind);

// By what the columns of a net's inputs are scaled.
struct InputScaling {
  ColumnScaling rows, steps;
  std::array<ColumnScaling, feature::kProgramKinds> summaries;
};

struct Batch {
  int64_t programs = 0;
  // Rows of program p: row_begin[p] to row_begin[p + 1]. programs + 1 numbers.
  std::vector<int64_t> row_begin;
  std::vector<float> rows;         // feature::kPerStoreWidth a row
  std::vector<int64_t> positions;  // by row: LeafFeatures::positions
  std::vector<int64_t> step_begin;
  std::vector<float> steps;     // StepOptions::width() a step
  std::vector<int64_t> device;  // by program: place in BatchOptions::devices, -1: none of them
  // kDeviceColumns a program: device_columns() / kDeviceScale. Nothing is fitted: a training set has few
  // devices, and one never seen must not leave the range that was learned by far.
  std::vector<float> device_features;
  std::vector<double> base;  // by program: log(seconds), see BaseKind
  std::array<SummaryRows, feature::kProgramKinds> summaries;
  AccessCache accesses;  // of the workloads, kept from batch to batch

  // Labels by program; empty for what is only predicted.
  std::vector<double> log_seconds;  // +inf: failed
  std::vector<float> score;         // least seconds of the program's task on its device / seconds; 0: failed
  std::vector<int64_t> task;        // number of the workload and device: only equal ones are compared

  void clear();
  // Appends; on an error (kInvalidArgument: no leaves, no trace where one is read) the batch is not to be
  // used.
  Status add(const ProgramQuery& query, const BatchOptions& options);

 private:
  Status add_summary(const ProgramQuery& query);
};

}  // namespace tensorsmith::learn::net
