// The training loop of all neural networks, in libtorch. Internal to learn/net.
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
  double clip = 0.5;                   // limit of the gradient's norm; 0: no limit
  std::string optimizer = "adamw";     // "adam", "adamw"
  std::string schedule = "one-cycle";  // "one-cycle", "cosine", "cyclic", "constant": see learning_rate_at()
  int patience = 0;  // stops after so many epochs without a better validation error; 0: never
  int list = 64;     // programs of a task that stay together for ranking losses
  double cmd = 0;    // weight of the CMD between training and unlabelled programs, on the last layer's inputs
  LossOptions loss;

  // Reads the parameters with the names of the members, and rank_weight, with the members as
  // defaults. "loss" is read by the kinds, each of which allows some losses.
  void read(Parameters& parameters);
};

// Returns the learning rate for optimizer step `step` of `steps`: one-cycle: rises from 1/25 over
// the first tenth, then falls to 0 by a half cosine; cosine: falls all the way; cyclic: ten
// triangles between a tenth and ten times the rate (CDMPP); constant.
double learning_rate_at(const TrainOptions& options, int64_t step, int64_t steps);

struct TrainOutcome {
  int epochs = 0;      // finished epochs
  int best_epoch = 0;  // the epoch that the network's weights come from
  // Error on the validation records. For ranking losses: share of pairs that are ordered wrongly.
  // Otherwise: mean absolute percentage error, with each error limited to kMostError. NaN without
  // validation records; the last epoch is taken then.
  double validation_error = 0;
};
inline constexpr double kMostError = 10;

// Sets the number of torch's threads for the calling thread within a scope.
class Threads {
 public:
  explicit Threads(int n) : before_(at::get_num_threads()) { at::set_num_threads(n); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// If `on`, computes matrix products in bfloat16 within a scope, on this thread: torch's autocast
// for CPU and CUDA.
class MixedPrecision {
 public:
  explicit MixedPrecision(bool on);
  ~MixedPrecision();
  MixedPrecision(const MixedPrecision&) = delete;
  MixedPrecision& operator=(const MixedPrecision&) = delete;

 private:
  bool on_;
};

// Returns the device that networks run on: CUDA if torch has it.
torch::Device compute_device();

// Returns log(seconds) of a batch's programs.
std::vector<double> predict_batch(Net& net, const Batch& batch, const BatchOptions& options,
                                  const LabelTransform& transform, torch::Device device);
// Returns log(seconds) of records in their order, computed in batches of kPredictBatch.
inline constexpr size_t kPredictBatch = 512;
Result<std::vector<double>> predict_records(Net& net, Records& records, const LabelTransform& transform,
                                            std::span<const int64_t> numbers, torch::Device device);

// Trains the network, which must be on `device`. The same data, options, seed and number of threads
// give the same weights, even if training is stopped (kCancelled) and resumed from its checkpoint.
// Ends with kInvalidArgument if a loss is not finite. training: training_hash(); a checkpoint of
// another training is refused. group: each process computes the loss on a share of each batch, and
// the gradients are summed with the sizes of the shares as weights. Process 0 validates, writes
// checkpoints and reports.
Result<TrainOutcome> train_net(Net& net, Records& records, const LabelTransform& transform,
                               const TrainOptions& options, const TrainingControl& control,
                               const std::string& training, torch::Device device,
                               ProcessGroup* group = nullptr);

}  // namespace tensorsmith::learn::net
