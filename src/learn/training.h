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

// Records of a store that a model is trained and chosen by. Failed programs may be among them.
struct TrainingData {
  const Store* store = nullptr;
  std::vector<int64_t> train, validation;  // record numbers
  // Programs of the devices or tasks that the model is for, whose times are not looked at; models that adapt
  // to them (CDMPP's CMD) do. May be empty.
  std::vector<int64_t> unlabelled;
  std::vector<const target::Device*> devices;  // by device number of the store
};

struct TrainingProgress {
  int step = 0, steps = 0;  // rounds or epochs
  double train_loss = 0, validation_loss = 0;
  double samples_per_second = 0;  // 0: not known
  // Of a model whose parts are trained one after the other, each from its own first step: the part's name
  // ("cpu-nests-member-1") and its step. Empty: the model is trained as a whole.
  std::string member;
  int member_step = 0;
};

// Processes that train one model together, as torch.distributed counts them: on this machine or on several. They have the
// same data, parameters and seed; the model is that of all.
struct Processes {
  std::string host;  // of process 0, and
  int port = 0;      // where it waits for the others
  int rank = 0, count = 1;
};

struct TrainingControl {
  uint64_t seed = 0;
  std::string command, split;  // for the card
  int threads = 1;
  // A file that training goes on from where it exists, and is written to after each epoch; empty: none.
  std::string checkpoint;
  // Called by kinds that keep checkpoints, once the file, if there is one, is known to be of this training.
  std::function<void()> owns_checkpoint;
  std::function<void(const TrainingProgress&)> progress;
  // Whether progress has a validation loss also where it decides nothing and takes time to compute.
  bool validation_curves = false;
  // Asked between steps: true ends training with kCancelled, after a checkpoint.
  std::function<bool()> stop;
  // Of a trainer that several_processes(). Only process 0 reports progress and keeps checkpoints.
  Processes processes;
};

class CostModelTrainer {
 public:
  virtual ~CostModelTrainer() = default;
  // Whether the model is trained by TrainingControl::processes together; else by each process alone.
  virtual bool several_processes() const { return false; }
  // The validation part chooses the checkpoint; without one the last is taken. Nothing else of the store is
  // looked at.
  virtual Result<std::unique_ptr<CostModel>> train(const TrainingData& data,
                                                   const TrainingControl& control) const = 0;
  // Goes on from a trained model of the same kind with (few) further records, for instance of another device.
  virtual Result<std::unique_ptr<CostModel>> fine_tune(const CostModel& model, const TrainingData& data,
                                                       const TrainingControl& control) const = 0;
};

// kind: a name of cost_model_kinds(). parameters: a JSON object of hyper-parameters; what it leaves out
// has the default, an unknown name is an error (kInvalidArgument).
Result<std::unique_ptr<CostModelTrainer>> make_trainer(const std::string& kind,
                                                       const nlohmann::json& parameters);
std::vector<std::string> cost_model_kinds();
}  // namespace tensorsmith::learn
