// Batches of programs as the models of users read them (docs/own_cost_model.md): contiguous arrays that can
// be sent to another process or viewed by another language without a copy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/workload.h"
#include "learn/cost_model.h"
#include "learn/latency/queries.h"

namespace tensorsmith::learn {

// The parts of a batch that a model reads.
struct CustomInputs {
  bool features = false, stores = false, decisions = false, traces = false, programs = false;
};
struct CustomInput {
  std::string_view name;
  bool CustomInputs::* member;
};
std::span<const CustomInput> custom_inputs();
// kInvalidArgument for an unknown name, or if there is none.
Result<CustomInputs> parse_custom_inputs(std::span<const std::string> names);
// The parts of a query from which such a batch is made.
ModelInputs model_inputs(const CustomInputs& inputs);

// A task of the programs, numbered from 0 in the order in which a model meets them.
struct CustomTask {
  std::string name, key, workload;  // `workload`: as text
  double flops = 0;
};

struct CustomBatch {
  size_t size = 0;             // number of programs
  std::vector<int32_t> tasks;  // number of each program's task
  // Empty unless the model reads them:
  std::vector<float> features;                  // size x number of feature names, row-major
  std::vector<int32_t> store_counts;            // rows of each program in `stores`
  std::vector<float> stores;                    // rows x feature::kPerStoreWidth, program after program
  std::vector<std::vector<int64_t>> decisions;  // number of the sketch, then the decisions; empty: not known
  std::vector<std::string> traces;              // one step a line
  std::vector<std::string> programs;            // loops; empty: the program cannot be built
  std::vector<float> seconds;                   // measured, for updates only; +inf: failed
};

// The kinds of programs whose features a search asks about, and the names of these features. `recorded`:
// programs of a store, which others may have compiled.
class CustomFeatures {
 public:
  CustomFeatures(target::DeviceKind device, bool recorded);

  // "seconds.NAME" for a resource of a program summary, "NAME" for its other columns; "KIND.seconds.NAME" and
  // "KIND.NAME" if there are several kinds of programs.
  const std::vector<std::string>& names() const { return names_; }
  // Adds a row: 0 for features of other kinds of programs.
  void append_row(const feature::ProgramSummary& summary, std::vector<float>& out) const;

 private:
  std::vector<std::string> names_;
  std::map<feature::ProgramKind, size_t> begins_;  // place of a kind's first feature
};

// Makes the batches of one search, and numbers its tasks. Not thread-safe.
class CustomBatches {
 public:
  CustomBatches(CustomFeatures features, const CustomInputs& inputs)
      : features_(std::move(features)), inputs_(inputs) {}

  // kInvalidArgument for a query that lacks what the model reads.
  Result<CustomBatch> make(std::span<const ProgramQuery> queries);
  // All tasks of the batches so far.
  const std::vector<CustomTask>& tasks() const { return tasks_; }

 private:
  int32_t task_of(const StoredWorkload& workload);
  Status append(const ProgramQuery& query, CustomBatch& batch);
  std::string program_text(int32_t task, const sched::Trace& trace);

  CustomFeatures features_;
  CustomInputs inputs_;
  QuerySummarizer summarizer_;
  std::vector<CustomTask> tasks_;
  std::map<std::string, int32_t, std::less<>> numbers_;               // of tasks, by key
  std::map<int32_t, std::shared_ptr<const ir::Workload>> workloads_;  // null: the text cannot be parsed
};

}  // namespace tensorsmith::learn
