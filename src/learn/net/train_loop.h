// One training loop for every net, in libtorch. Internal to learn/net.
#pragma once

#include <ATen/Parallel.h>

#include <string>

#include "learn/latency/parameters.h"
#include "learn/net/losses.h"
#include "learn/net/process_group.h"
#include "learn/net/records.h"

namespace tensorsmith::learn::net {

struct TrainOptions {
  int epochs = 30;
  int batch = 512;  // programs
  double learning_rate = 1e-3;
  double weight_decay = 1e-6;
  double clip = 0.5;                   // of the gradient's norm; 0: not clipped
  std::string optimizer = "adamw";     // "adam", "adamw"
  std::string schedule = "one-cycle";  // "one-cycle", "cosine", "cyclic", "constant": see learning_rate_at()
  int patience = 0;                    // epochs without a better validation error that end training; 0: never
  int list = 64;                       // programs of a task that stand together where a loss ranks
  double cmd =
      0;  // weight of the discrepancy of the last layer's inputs between training and unlabelled programs
  LossOptions loss;

  // Reads the parameters of these names, also rank_weight; the kinds read "loss", of which each takes some.
  // What the struct holds is the default.
  void read(Parameters& parameters);
};

// Of the step-th of `steps` optimizer steps:
// one-cycle: from a 25th up over the first tenth, then down a half cosine to nothing; cosine: down all the
// way; cyclic: up and down ten times between a tenth and ten times the rate (CDMPP); constant.
double learning_rate_at(const TrainOptions& options, int64_t step, int64_t steps);

struct TrainOutcome {
  int epochs = 0;      // done
  int best_epoch = 0;  // whose weights the net has now
  // Of the validation records. Ranking losses: share of pairs in the wrong order. Else: mean absolute
  // percentage error, each error at most kMostError. NaN: nothing to validate with; the last epoch is taken.
  double validation_error = 0;
};
inline constexpr double kMostError = 10;

// Sets the calling thread's torch threads for a scope.
class Threads {
 public:
  explicit Threads(int n) : before_(at::get_num_threads()) { at::set_num_threads(n); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// Makes matrix products bfloat16 for a scope, on this thread, if `on`: torch's autocast, for CPU and CUDA.
class MixedPrecision {
 public:
  explicit MixedPrecision(bool on);
  ~MixedPrecision();
  MixedPrecision(const MixedPrecision&) = delete;
  MixedPrecision& operator=(const MixedPrecision&) = delete;

 private:
  bool on_;
};

// Seconds of a clock that never goes back, for rates.
double steady_seconds();

// The device that nets run on: CUDA where torch has it.
torch::Device compute_device();

// log(seconds) of a batch's programs.
std::vector<double> predict_batch(Net& net, const Batch& batch, const BatchOptions& options,
                                  const LabelTransform& transform, torch::Device device);
// log(seconds) of records in their order, in batches of kPredictBatch.
inline constexpr size_t kPredictBatch = 512;
Result<std::vector<double>> predict_records(Net& net, Records& records, const LabelTransform& transform,
                                            std::span<const int64_t> numbers, torch::Device device);

// Trains the net, which is on the device. The same data, options, seed and number of threads give the same
// weights, also if training is stopped (kCancelled) and goes on from its checkpoint. Losses that are not
// finite end it with kInvalidArgument. training: training_hash(); a checkpoint of another training is
// refused. group: each of its processes has a share of each batch, whose loss is its own; gradients are added up by the sizes
// of the shares. Process 0 validates, writes checkpoints and reports.
Result<TrainOutcome> train_net(Net& net, Records& records, const LabelTransform& transform,
                               const TrainOptions& options, const TrainingControl& control,
                               const std::string& training, torch::Device device,
                               ProcessGroup* group = nullptr);

}  // namespace tensorsmith::learn::net
