// Training of cost models on a store of measured programs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "learn/cost_model.h"
#include "learn/dataset/store.h"

namespace tensorsmith::learn {

// The records of a store that a model is trained on and selected by. They may include failed
// programs.
struct TrainingData {
  const Store* store = nullptr;
  std::vector<int64_t> train, validation;  // record numbers
  // Programs of the devices or tasks that the model is meant for, whose times are not used. Models
  // that adapt to them (CDMPP by its CMD loss) read their features. May be empty.
  std::vector<int64_t> unlabelled;
  std::vector<const target::Device*> devices;  // by device number of the store
};

struct TrainingProgress {
  int step = 0, steps = 0;  // in rounds or epochs
  double train_loss = 0, validation_loss = 0;
  double samples_per_second = 0;  // 0: not known
  // For a model whose members are trained one after the other, each counting from its first step:
  // name ("cpu-nests-member-1") and step of the member. Empty if the model is trained as a whole.
  std::string member;
  int member_step = 0;
};

// A group of processes, on one or several machines, that train one model together, numbered as in
// torch.distributed. All must have the same data, parameters and seed, and all get the same model.
struct Processes {
  std::string host;  // address of process 0
  int port = 0;      // port at which process 0 waits for the others
  int rank = 0, count = 1;
};

struct TrainingControl {
  uint64_t seed = 0;
  std::string command, split;  // written to the card
  int threads = 1;
  // Training resumes from this file if it exists, and writes it after each epoch; empty: no
  // checkpoints.
  std::string checkpoint;
  // Called by kinds that keep checkpoints as soon as it is known that the checkpoint file is absent
  // or belongs to this training.
  std::function<void()> owns_checkpoint;
  std::function<void(const TrainingProgress&)> progress;
  // Whether progress must include a validation loss even if training does not use it and it takes
  // time to compute.
  bool validation_curves = false;
  // Called between steps; if it returns true, training writes a checkpoint and ends with
  // kCancelled.
  std::function<bool()> stop;
  // For trainers with several_processes(). Only process 0 reports progress and keeps checkpoints.
  Processes processes;
};

class CostModelTrainer {
 public:
  virtual ~CostModelTrainer() = default;
  // Whether TrainingControl::processes train the model together. If not, each process trains it
  // alone.
  virtual bool several_processes() const { return false; }
  // Selects the model by the validation part; without one, takes the last. Reads no other records
  // of the store than those of `data`.
  virtual Result<std::unique_ptr<CostModel>> train(const TrainingData& data,
                                                   const TrainingControl& control) const = 0;
  // Continues training of a model of the same kind with (few) further records, for instance of
  // another device.
  virtual Result<std::unique_ptr<CostModel>> fine_tune(const CostModel& model, const TrainingData& data,
                                                       const TrainingControl& control) const = 0;
};

}  // namespace tensorsmith::learn
