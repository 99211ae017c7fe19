// Records of a store as queries and as what was measured.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "learn/training.h"

namespace tensorsmith::learn {

// By device of the store: its attributes as the store has them, else as the registry has them
// (target::find_device). kNotFound names the store's
// device that is not known.
Result<std::vector<target::Device>> devices_of(const Store& store);
std::vector<const target::Device*> pointers_to(const std::vector<target::Device>& devices);

// Queries of some records; the memory is used again for the next ones.
class QueryBatch {
 public:
  // devices: by device number of the store. inputs: what the model reads; leaves are always made. All outlives the batch.
  QueryBatch(const Store& store, std::span<const target::Device* const> devices, const ModelInputs& inputs)
      : store_(store), devices_(devices), inputs_(inputs) {}
  // Until the next call. kInvalidArgument for a record without features (a failed program that could not be
  // made); errors of Store::trace.
  Result<std::span<const ProgramQuery>> make(std::span<const int64_t> records);

 private:
  const Store& store_;
  std::span<const target::Device* const> devices_;
  ModelInputs inputs_;
  std::vector<feature::LeafFeatures> leaves_;
  std::vector<feature::FeatureMatrix> rows_;
  std::vector<sched::Trace> steps_;
  std::vector<ProgramQuery> queries_;
};

// In the order of the records, by batches.
Result<std::vector<Prediction>> predict_records(const CostModel& model, const Store& store,
                                                std::span<const target::Device* const> devices,
                                                std::span<const int64_t> records);

// Of the given records those whose device has one of the names as the store calls it.
std::vector<int64_t> records_of_devices(const Store& store, std::span<const int64_t> records,
                                        const std::vector<std::string>& names);

// For learning curves: of the given records those of at most max_workloads workloads and of at most
// max_programs programs a task (workload and device); 0: any number. Drawn by the seed so that fewer are a
// part of more. In their order.
std::vector<int64_t> some_records(const Store& store, std::span<const int64_t> records, int max_workloads,
                                  int max_programs, uint64_t seed);

}  // namespace tensorsmith::learn
