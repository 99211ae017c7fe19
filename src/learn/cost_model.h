// The interface of all cost models. A model takes programs of a task on a device and returns their
// expected latency, its deviation, and which of their properties were not in the model's training
// data. A model comes from a file (CostModelKinds::load) or starts empty (learn/search_model.h); some
// learn from measurements during a search.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "feature/per_store.h"
#include "feature/program_summary.h"
#include "learn/dataset/store.h"
#include "record/candidate.h"
#include "sched/step.h"
#include "space/estimate/parts.h"
#include "target/target.h"

namespace tensorsmith::learn {

// A program and the device that it would run on. The pointers must stay valid during the call.
struct ProgramQuery {
  const StoredWorkload* workload = nullptr;  // provides flops and name
  const feature::LeafFeatures* leaves = nullptr;
  const sched::Trace* trace = nullptr;
  const target::Device* device = nullptr;
  const feature::FeatureMatrix* rows = nullptr;      // feature::extract_per_store
  const std::vector<float>* profile = nullptr;       // feature::cpu_profile_row of a program that has run
  const feature::ProgramSummary* summary = nullptr;  // feature::summarize_program
  const record::DesignPoint* point = nullptr;        // null also if it is not known
  const space::EstimateParts* parts = nullptr;       // null also if the point is not known
};

// The parts of a query that a model reads besides workload and device; the others may be null.
struct ModelInputs {
  bool rows = false, leaves = false, trace = false;
  bool profile = false;  // profiler counters; such a model cannot predict programs that have never run
  // The summary replaces leaves and trace. Whoever has the schedule makes it without replaying the trace.
  bool summary = false;
  bool trace_beside_summary = false;  // the trace is read even if there is a summary
  bool point = false;                 // the decisions, if they are known
  bool parts = false;                 // the parts of the design space's estimate, if the decisions are known
  // Whether all that the model reads follows from the decisions, so that no schedule has to be made.
  bool only_parts() const { return parts && !rows && !leaves && !trace && !profile && !summary; }
};

// Properties of a query that were not in the model's training data.
struct Unseen {
  bool device = false;
  bool threads = false;  // this number of CPU cores
  bool kind = false;     // programs of this device kind or structure; a physical estimate is used instead
  bool size = false;     // workloads of this size; affects predictions for unknown devices only
  bool any() const { return device || threads || kind; }
  friend bool operator==(const Unseen&, const Unseen&) = default;
};

struct Prediction {
  double seconds = 0;  // +inf if the model predicts that the program cannot run
  // Standard deviation of log(seconds): 68.27 % of measurements lie within it. Calibrated on
  // programs that the fit has not seen; if the device was not in the training data, on devices that
  // the fit has not seen. 0 = not known.
  double log_sigma = 0;
  // Expected time of a typical run, for sums over programs; 0 if the model has no better value than
  // `seconds`, which minimizes the percentage error.
  double mean_seconds = 0;
  // Value to rank programs of one task on one device by, if the model knows more about their order
  // than `seconds` shows; else 0.
  double ranking_seconds = 0;
  // Half widths of the intervals of log(seconds) that contain 90 % and 95.45 % of measurements.
  // Measured errors have longer tails than a normal distribution with log_sigma, which is used
  // where these are 0.
  double log_90 = 0, log_95 = 0;
  // Standard deviation of log(seconds) among the model's members, which were trained on different
  // samples of the same data; 0 if there are no members. Indicates which tasks the model is wrong
  // on (`dataset next`), but not by how much.
  double disagreement = 0;
  Unseen unseen;

  double ranked() const { return ranking_seconds > 0 ? ranking_seconds : seconds; }
  double half90() const { return log_90 > 0 ? log_90 : 1.6449 * log_sigma; }
  double half95() const { return log_95 > 0 ? log_95 : 2 * log_sigma; }
};

// A device that a model was trained on. Fields are 0 or empty if not known, as for a file that only
// names its devices.
struct SeenDevice {
  std::string name;
  target::DeviceKind kind = target::DeviceKind::kCpu;
  std::string cpu, arch;
  int cores = 0, vector_bytes = 0;
  double clock_ghz = 0, memory_bandwidth_gbs = 0;
  friend bool operator==(const SeenDevice&, const SeenDevice&) = default;
};

// Errors of predictions for something that was left out of training, as logarithms of measured /
// predicted seconds.
struct HeldOutError {
  double shift = 0;                              // median of the errors
  double log_sigma = 0, log_90 = 0, log_95 = 0;  // half widths around the shift (Prediction)
  double other_sizes = 1;  // factor on the half widths for sizes of workloads outside the training data
  int devices = 0;         // number of devices left out
  int64_t records = 0;
  std::string source;  // for messages: what was left out and measured
  bool known() const { return log_sigma > 0; }
  friend bool operator==(const HeldOutError&, const HeldOutError&) = default;
};

// Description of a model and its training data; stored in its file.
struct ModelCard {
  std::string kind;                  // "roofline", "xgboost", "mlp", "tlp", "cdmpp", "tensorsmith", ...
  int feature_version = 0;           // feature::kPerStoreVersion
  std::string store_hash;            // hash of the training store
  std::string split;                 // Split::content_hash of the split that chose the records; may be empty
  std::vector<std::string> devices;  // names of the training devices
  std::vector<std::string> workloads;  // keys (StoredWorkload::key) of training and validation, ascending
  int64_t records = 0;
  uint64_t seed = 0;
  std::string command;     // the command that made the model
  std::string parameters;  // JSON object with the hyper-parameters
  std::string metrics;     // JSON object with the scores on the validation part
  // The training devices with their attributes; empty in older files, which have only the names.
  std::vector<SeenDevice> seen;
  // Errors on devices that were left out (learn/latency/held_out.h), indexed by target::DeviceKind.
  // new_device: other training devices are of the same kind. new_kind: no training device is of the
  // kind, or the model has not seen programs of the kind.
  std::array<HeldOutError, 2> new_device, new_kind;
};

struct MeasuredProgram {
  ProgramQuery program;
  double seconds = 0;  // +inf: failed
  double weight = 1;   // in training, in (0, 1]; less than 1 if others used the machine (record::trust)
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  // Returns predictions in the order of the queries; kInvalidArgument for a query that lacks an
  // input of the model. Thread-safe. It uses only the calling thread; callers may split their
  // queries over threads.
  virtual Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const = 0;
  virtual ModelInputs inputs() const { return {.leaves = true}; }
  // If true, the predicted seconds are comparable only within one task and device, and their errors
  // have no meaning.
  virtual bool ranks_only() const { return false; }
  virtual const ModelCard& card() const = 0;
  // Replaces the file atomically (learn/latency/model_file.h describes the format). kUnsupported
  // for a model that has learned during a search.
  virtual Status save(const std::string& path) const = 0;

  // Whether the model has learned enough for its predictions to be meaningful.
  virtual bool ready() const { return true; }
  // Whether update() has an effect.
  virtual bool learns() const { return false; }
  // Whether the predictions are the design space's estimates, corrected. If not, a search weighs the two
  // against each other. Such a model is trained on the order of a task's programs.
  virtual bool corrects_estimate() const { return false; }
  // Whether a call of predict() is so expensive that callers should pass all their queries in one call.
  virtual bool takes_large_batches() const { return false; }
  // Whether an error of predict() or update() ends a search. If not, the search continues with the design
  // space's estimate or with what the model has learned before.
  virtual bool required() const { return false; }
  // Replaces the programs of the last call by these, all that the search has measured so far. A
  // program keeps its address from call to call. Must not run concurrently with predict(). An error
  // leaves the model unchanged.
  virtual Status update(std::span<const MeasuredProgram>) { return {}; }
};

struct UntrainedOptions {
  uint64_t seed = 0;
  int threads = 1;  // for models that learn during a search
};

// Whether the queries that the caller of CostModelKinds::load will make have profiles.
enum class QueryProfiles : uint8_t { kNone, kGiven };

}  // namespace tensorsmith::learn
