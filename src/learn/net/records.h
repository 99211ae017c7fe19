// Reads the training, validation and unlabelled records of a store in batches. Holds only numbers
// of records and of their tasks; programs are read from the mapped file batch by batch.
#pragma once

#include <memory>
#include <vector>

#include "learn/latency/queries.h"
#include "learn/net/batch.h"
#include "learn/net/statistics.h"

namespace tensorsmith::learn::net {

class Records {
 public:
  // `data` must outlive the object. failed: whether failed programs are trained on too (as the
  // worst of their task, for ranking losses); they are never used for validation. kInvalidArgument
  // if no measured program is left to train on.
  static Result<std::unique_ptr<Records>> create(const TrainingData& data, const BatchOptions& options,
                                                 bool failed);

  const TrainingData& data() const { return data_; }
  const BatchOptions& options() const { return options_; }
  const std::vector<int64_t>& validation() const { return validation_; }  // by task, then ascending
  const std::vector<int64_t>& unlabelled() const { return unlabelled_; }
  int64_t train_size() const { return std::ssize(train_); }

  // Returns the training records in the order of an epoch, which depends only on seed and epoch.
  // list > 0: groups of up to `list` records of a task stay together (ranking losses compare within
  // them); 0: all are shuffled.
  std::vector<int64_t> order(uint64_t seed, int epoch, int list) const;
  // Reads the programs in the order of the records, with their labels. Batch::score is relative to
  // the least time of the task among the training records, or among the validation records if the
  // task has no training records.
  Status read(std::span<const int64_t> records, Batch& out);
  // Reads no labels and does not access the times of the records.
  Status read_unlabelled(std::span<const int64_t> records, Batch& out);

  struct Fit {
    InputScaling inputs;
    LabelTransform labels;  // for the measured programs
  };
  // Computes statistics in one pass over the training records, or over at most `most` evenly spaced
  // ones.
  Result<Fit> fit(ScalingKind scaling, const std::string& transform, int64_t most = 500'000);

 private:
  Records(const TrainingData& data, BatchOptions options);
  uint32_t task_of(const Store::Entry& entry) const;

  const TrainingData& data_;
  const BatchOptions options_;
  QueryBatch queries_;
  std::vector<int64_t> train_, validation_, unlabelled_;
  std::vector<uint32_t> train_task_;   // by index in train_
  std::vector<double> least_seconds_;  // by task
};

}  // namespace tensorsmith::learn::net
