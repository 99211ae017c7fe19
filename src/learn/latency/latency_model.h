// Models that predict how long a program takes on a device, in seconds. The online model of a search
// (learn/cost_model.h) only ranks the programs of one task; these know devices, carry a card that says what
// they were trained on, and are kept in files.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "feature/per_store.h"
#include "learn/dataset/store.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::learn {

// A program and the device that it would run on. Pointers outlive the call.
struct LatencyQuery {
  const StoredWorkload* workload = nullptr;  // its flops and name
  const feature::LeafFeatures* leaves = nullptr;
  const sched::Trace* trace = nullptr;  // models that do not read it (LatencyModel::reads_trace) take null
  const target::Device* device = nullptr;
};

// What a model is asked about and has not been trained on.
struct Unseen {
  bool device = false;
  bool threads = false;  // as many CPU cores
  bool kind = false;     // programs of this kind of device or structure: a physical estimate stands in
  bool any() const { return device || threads || kind; }
  friend bool operator==(const Unseen&, const Unseen&) = default;
};

struct LatencyPrediction {
  double seconds = 0;  // +inf where the model says that the program cannot run
  // Standard deviation of log(seconds): 68.27 % of what is measured lies within it. Calibrated on programs
  // that the fit has not seen, of devices that it has not seen where the query's is none of them; 0: the
  // model does not know.
  double log_sigma = 0;
  // The expected time of a typical run, to add up over programs; 0: the model knows no better than `seconds`,
  // which is where the percentage error is lowest.
  double mean_seconds = 0;
  // Half the width of the intervals of log(seconds) that hold 90 and 95.45 %; 0: as of a normal distribution
  // with log_sigma. Measured errors have longer tails.
  double log_90 = 0, log_95 = 0;
  Unseen unseen;

  double half90() const { return log_90 > 0 ? log_90 : 1.6449 * log_sigma; }
  double half95() const { return log_95 > 0 ? log_95 : 2 * log_sigma; }
};

// A device that a model was trained on. Zero and empty: not known, of a file that names its devices only.
struct SeenDevice {
  std::string name;
  target::DeviceKind kind = target::DeviceKind::kCpu;
  std::string cpu;
  int cores = 0, vector_bytes = 0;
  double clock_ghz = 0, memory_bandwidth_gbs = 0;
  friend bool operator==(const SeenDevice&, const SeenDevice&) = default;
};

// How far predictions were off where something was left out of training; logarithms of measured / predicted
// seconds.
struct HeldOutError {
  double shift = 0;                              // their median
  double log_sigma = 0, log_90 = 0, log_95 = 0;  // half widths around the shift (LatencyPrediction)
  int devices = 0;                               // that were left out
  int64_t records = 0;
  std::string source;  // what was left out and measured, for people
  bool known() const { return log_sigma > 0; }
  friend bool operator==(const HeldOutError&, const HeldOutError&) = default;
};

// What a model is and what it has seen; kept in its file.
struct ModelCard {
  std::string kind;                  // "roofline", "xgboost", "mlp", "tlp", "cdmpp", "tensorsmith", ...
  int feature_version = 0;           // feature::kPerStoreVersion
  std::string store_hash;            // of the training store
  std::string split;                 // Split::content_hash of the split that chose the records; may be empty
  std::vector<std::string> devices;  // trained on
  std::vector<std::string> workloads;  // keys (StoredWorkload::key) of training and validation, ascending
  int64_t records = 0;
  uint64_t seed = 0;
  std::string command;     // that made it
  std::string parameters;  // JSON object: hyper-parameters
  std::string metrics;     // JSON object: on the validation part
  // The devices with their figures; empty in files of before, which have the names only.
  std::vector<SeenDevice> seen;
  // What predictions are worth on devices left out (learn/latency/held_out.h), by target::DeviceKind: those
  // of a kind of device that others of the training part have, and those of a kind of program that none has.
  std::array<HeldOutError, 2> new_device, new_kind;
};

class LatencyModel {
 public:
  virtual ~LatencyModel() = default;
  // In the order of the queries; kInvalidArgument for a query that the model cannot take. Thread-safe, and
  // works on the calling thread alone: callers give batches from several threads.
  virtual Result<std::vector<LatencyPrediction>> predict(std::span<const LatencyQuery> queries) const = 0;
  virtual bool reads_trace() const { return false; }
  // Models that rank only give seconds that compare within one task and device; their errors in seconds mean
  // nothing.
  virtual bool ranks_only() const { return false; }
  virtual const ModelCard& card() const = 0;
  // Replaces the file at once or not at all (learn/latency/model_file.h describes the format).
  virtual Status save(const std::string& path) const = 0;
};

// Records of a store that a model is trained and chosen by. Failed programs may be among them.
struct LatencyData {
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
  // Asked between steps: true ends training with kCancelled, after a checkpoint.
  std::function<bool()> stop;
};

class LatencyTrainer {
 public:
  virtual ~LatencyTrainer() = default;
  // The validation part chooses the checkpoint; without one the last is taken. Nothing else of the store is
  // looked at.
  virtual Result<std::unique_ptr<LatencyModel>> train(const LatencyData& data,
                                                      const TrainingControl& control) const = 0;
  // Goes on from a trained model of the same kind with (few) further records, for instance of another device.
  virtual Result<std::unique_ptr<LatencyModel>> fine_tune(const LatencyModel& model, const LatencyData& data,
                                                          const TrainingControl& control) const = 0;
};

// kind: a name of latency_model_kinds(). parameters: a JSON object of hyper-parameters; what it leaves out
// has the default, an unknown name is an error (kInvalidArgument).
Result<std::unique_ptr<LatencyTrainer>> make_latency_trainer(const std::string& kind,
                                                             const nlohmann::json& parameters);
std::vector<std::string> latency_model_kinds();
// kCorrupt for a damaged file, kMismatch for one of another schema or version.
Result<std::unique_ptr<LatencyModel>> load_latency_model(const std::string& path);

}  // namespace tensorsmith::learn
