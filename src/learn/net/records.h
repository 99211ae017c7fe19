// The training, validation and unlabelled records of a store as batches. Holds numbers of records and of
// their tasks, never the programs: those are read from the mapped file batch by batch.
#pragma once

#include <memory>
#include <vector>

#include "learn/latency/queries.h"
#include "learn/net/batch.h"
#include "learn/net/statistics.h"

namespace tensorsmith::learn::net {

class Records {
 public:
  // data outlives it. failed: whether failed programs train too (as the worst of their task, for
  // ranking losses); they never validate. kInvalidArgument where nothing is left to train on.
  static Result<std::unique_ptr<Records>> create(const TrainingData& data, const BatchOptions& options,
                                                 bool failed);

  const TrainingData& data() const { return data_; }
  const BatchOptions& options() const { return options_; }
  const std::vector<int64_t>& validation() const { return validation_; }  // by task, otherwise ascending
  const std::vector<int64_t>& unlabelled() const { return unlabelled_; }
  int64_t train_size() const { return static_cast<int64_t>(train_.size()); }

  // The training records in the order of an epoch, the same for the same seed and epoch. list > 0: up to so
  // many records of a task stand together (ranking losses compare within them); 0: all are shuffled.
  std::vector<int64_t> order(uint64_t seed, int epoch, int list) const;
  // Programs in the order of the records, with their labels (Batch::score: by the least time of the task
  // among the training records; of a task that is not among them, of the validation records).
  Status read(std::span<const int64_t> records, Batch& out);
  // Without labels: entries' times are not read.
  Status read_unlabelled(std::span<const int64_t> records, Batch& out);

  struct Fit {
    InputScaling inputs;
    LabelTransform labels;  // of the measured programs
  };
  // Statistics in one pass over the training records; over at most `most` of them, evenly chosen.
  Result<Fit> fit(ScalingKind scaling, const std::string& transform, int64_t most = 500'000);

 private:
  Records(const TrainingData& data, BatchOptions options);
  uint32_t task_of(const Store::Entry& entry) const;

  const TrainingData& data_;
  const BatchOptions options_;
  QueryBatch queries_;
  std::vector<int64_t> train_, validation_, unlabelled_;
  std::vector<uint32_t> train_task_;   // by place in train_
  std::vector<double> least_seconds_;  // by task
};

}  // namespace tensorsmith::learn::net
