// The state of a training run in a file, so that a killed run goes on. Internal to learn/net.
#pragma once

#include <torch/optim/optimizer.h>

#include <string>
#include <vector>

#include "learn/net/net.h"
#include "learn/net/process_group.h"

namespace tensorsmith::learn::net {

struct TrainState {
  int epoch = 0;             // that is under way
  int64_t step = 0;          // batches done in it
  double loss_sum = 0;       // over these, times their programs
  int64_t programs = 0;      // in these
  int best_epoch = -1;       // -1: none validated yet
  double best_error = 0;     // validation error after best_epoch
  std::vector<Tensor> best;  // weights and buffers after best_epoch, as state_of() lists them; may be empty
};

// Parameters and buffers by name, in a fixed order.
std::vector<std::pair<std::string, Tensor>> state_of(const torch::nn::Module& module);

// Replaces the file at once or not at all. training: training_hash(); another run's file is refused.
Status save_checkpoint(const std::string& path, const std::string& training, const TrainState& state,
                       const torch::nn::Module& net, const torch::optim::Optimizer& optimizer);
// Goes on from the file if there is one. kCorrupt for a damaged one, kMismatch for another run's. Processes of a group
// (null: this one is alone) go on from that of process 0 and have its weights then.
Status resume(const std::string& path, const std::string& training, ProcessGroup* group, TrainState& state,
              torch::nn::Module& net, torch::optim::Optimizer& optimizer);

}  // namespace tensorsmith::learn::net
