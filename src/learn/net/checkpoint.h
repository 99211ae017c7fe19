// Stores the state of a training run in a file, so that an interrupted run can continue. Internal
// to learn/net.
#pragma once

#include <torch/optim/optimizer.h>

#include <string>
#include <vector>

#include "learn/net/net.h"
#include "learn/net/process_group.h"

namespace tensorsmith::learn::net {

struct TrainState {
  int epoch = 0;             // the current epoch
  int64_t step = 0;          // finished batches of the epoch
  double loss_sum = 0;       // of the finished batches, weighted by their programs
  int64_t programs = 0;      // in the finished batches
  int best_epoch = -1;       // -1: no epoch has been validated
  double best_error = 0;     // validation error after best_epoch
  std::vector<Tensor> best;  // weights and buffers after best_epoch, in the order of state_of(); may be empty
};

// Returns parameters and buffers by name, in a fixed order.
std::vector<std::pair<std::string, Tensor>> state_of(const torch::nn::Module& module);

// Replaces the file atomically. training: training_hash(), by which files of other runs are
// recognized.
Status save_checkpoint(const std::string& path, const std::string& training, const TrainState& state,
                       const torch::nn::Module& net, const torch::optim::Optimizer& optimizer);
// Continues from the file if it exists. kCorrupt for a damaged file, kMismatch for one of another
// run. All processes of a group (null: a single process) continue from the file of process 0, with
// its weights.
Status resume(const std::string& path, const std::string& training, ProcessGroup* group, TrainState& state,
              torch::nn::Module& net, torch::optim::Optimizer& optimizer);

}  // namespace tensorsmith::learn::net
