// Programs as the nets read them: any number of leaves and steps a program, one after the other without
// padding. Made of queries, so that training and prediction read the same.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "learn/latency/device_columns.h"
#include "learn/latency/latency_model.h"
#include "learn/net/step_sequence.h"

namespace tensorsmith::learn::net {

// Hand-made numbers of a program on a device beside its features: what is known and need not be learned.
class ProgramInputs {
 public:
  virtual ~ProgramInputs() = default;
  virtual int width() const = 0;  // may be 0
  // values: width() numbers. Returns log(seconds) that the net's output is added to, so that the net learns
  // how far a program is from it; 0: the net predicts seconds themselves. Thread-safe.
  virtual double read(const LatencyQuery& query, std::span<float> values) const = 0;
};

enum class RowKind : uint8_t {
  kNone,
  kStores,  // rows of feature::extract_per_store: an update overwrites its init
  kLeaves,  // every leaf of the syntax tree
};

struct BatchOptions {
  RowKind rows = RowKind::kLeaves;
  bool steps = false;  // needs LatencyQuery::trace
  StepOptions step_options;
  std::shared_ptr<const ProgramInputs> inputs;  // null: no numbers, output not added to anything
  std::vector<std::string> devices;             // trained on, by name; their places number them
};

inline constexpr float kDeviceScale = 8;

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
  std::vector<float> inputs;  // ProgramInputs::width() a program
  std::vector<double> base;   // by program: log(seconds), see ProgramInputs

  // Labels by program; empty for what is only predicted.
  std::vector<double> log_seconds;  // +inf: failed
  std::vector<float> score;         // least seconds of the program's task on its device / seconds; 0: failed
  std::vector<int64_t> task;        // number of the workload and device: only equal ones are compared

  void clear();
  // Appends; on an error (kInvalidArgument: no leaves, no trace where one is read) the batch is not to be
  // used.
  Status add(const LatencyQuery& query, const BatchOptions& options);
};

}  // namespace tensorsmith::learn::net
