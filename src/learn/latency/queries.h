// Converts records of a store into queries for models.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "learn/training.h"
#include "space/design_space.h"

namespace tensorsmith::learn {

// Returns the store's devices by their number. Attributes come from the store, else from the
// registry of devices (target::find_device). kNotFound names a device of the store that is unknown.
Result<std::vector<target::Device>> devices_of(const Store& store);
std::vector<const target::Device*> pointers_to(const std::vector<target::Device>& devices);

// Finds the parts of the estimates of a store's programs. Keeps the design spaces of their tasks.
class RecordedEstimates {
 public:
  // devices: by device number in the store. Both arguments must outlive this object.
  RecordedEstimates(const Store& store, std::span<const target::Device* const> devices)
      : store_(store), devices_(devices) {}
  // Returns nothing if the program's decisions are not known, or if the design space has changed since they
  // were recorded, so that they would make another program.
  Result<std::optional<space::EstimateParts>> of(int64_t record);

 private:
  const Store& store_;
  std::span<const target::Device* const> devices_;
  // By workload and device; without a space if the workload's text has none.
  std::map<std::pair<uint32_t, uint32_t>, std::optional<space::DesignSpace>> spaces_;
};

// Builds queries for batches of records and reuses its memory from batch to batch.
class QueryBatch {
 public:
  // devices: by device number in the store. inputs: which parts of a query the model reads; leaves
  // are always built. All arguments must outlive the batch.
  QueryBatch(const Store& store, std::span<const target::Device* const> devices, const ModelInputs& inputs)
      : store_(store), devices_(devices), inputs_(inputs), estimates_(store, devices) {}
  // The result is valid until the next call. kInvalidArgument for a record without features (a
  // failed program that could not be built); errors of Store::trace.
  Result<std::span<const ProgramQuery>> make(std::span<const int64_t> records);

 private:
  const Store& store_;
  std::span<const target::Device* const> devices_;
  ModelInputs inputs_;
  std::vector<feature::LeafFeatures> leaves_;
  std::vector<feature::FeatureMatrix> rows_;
  std::vector<sched::Trace> steps_;
  RecordedEstimates estimates_;
  std::vector<std::optional<space::EstimateParts>> parts_;
  std::vector<ProgramQuery> queries_;
};

// Summarizes programs, and keeps the access analysis of their workloads. For a workload whose text
// cannot be parsed only the flops are known.
class QuerySummarizer {
 public:
  // Reads the query's workload, leaves, trace and device.
  feature::ProgramSummary summarize(const ProgramQuery& query);

 private:
  std::map<const StoredWorkload*, feature::WorkloadAccess> known_;
};

// Predicts the records in batches; the results are in the order of the records.
Result<std::vector<Prediction>> predict_records(const CostModel& model, const Store& store,
                                                std::span<const target::Device* const> devices,
                                                std::span<const int64_t> records);

// Returns those of the records whose device has one of the given names in the store.
std::vector<int64_t> records_of_devices(const Store& store, std::span<const int64_t> records,
                                        const std::vector<std::string>& names);

// Selects records for learning curves: at most `max_workloads` workloads and `max_programs`
// programs per task (workload and device), 0 = no limit. The seed decides the choice; a smaller
// selection is a subset of a larger one with the same seed. The result keeps the order of the
// records.
std::vector<int64_t> some_records(const Store& store, std::span<const int64_t> records, int max_workloads,
                                  int max_programs, uint64_t seed);

}  // namespace tensorsmith::learn
