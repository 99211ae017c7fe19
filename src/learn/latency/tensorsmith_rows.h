// The rows that the trees of Tensorsmith's own latency model (learn/latency/tensorsmith_model.h)
// read.
#pragma once

#include <span>
#include <vector>

#include "learn/gbt/pack_sum.h"
#include "learn/latency/tensorsmith_base.h"

namespace tensorsmith::learn {

// The columns of a row: logarithms of the resources' shares of the base, the summary's columns, and
// base / roofline. Columns that are hidden are 0 in every row.
struct RowColumns {
  double least_share = 0;  // least share of a resource in the base
  bool of_device = false;  // whether columns that identify the device are visible
  bool of_size = false;    // likewise those that depend on the size of the workload
  // base_seconds: the program's base.
  void append_row(const feature::ProgramSummary& program, double base_seconds, std::vector<float>& out) const;
};
size_t tree_row_width(feature::ProgramKind kind);

// Rows of programs, with log(seconds / base) of each program.
struct BaseRows {
  std::vector<float> values;
  std::vector<double> errors;
};
// source: names the devices; nullptr: the base uses the factors of all devices together.
BaseRows base_rows(const TensorsmithBase& base, const RowColumns& columns, const ChosenPrograms& programs,
                   const TrainingData* source);
// Makes training data of the rows, with the weights of task_weights().
PackSumData pack_rows(const ChosenPrograms& programs, std::span<const float> rows,
                      std::span<const double> labels);

}  // namespace tensorsmith::learn
