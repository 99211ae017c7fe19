// The role of every cost model: programs of a task on a device in; expected latency, its deviation and what the
// model has not seen out. Kinds come from a file (load_cost_model) or from nothing (learn/search_model.h); some
// learn from measurements while a search goes on.
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
#include "learn/dataset/store.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::learn {

// A program and the device that it would run on. Pointers outlive the call.
struct ProgramQuery {
  const StoredWorkload* workload = nullptr;  // its flops and name
  const feature::LeafFeatures* leaves = nullptr;
  const sched::Trace* trace = nullptr;
  const target::Device* device = nullptr;
  const feature::FeatureMatrix* rows = nullptr;  // feature::extract_per_store
  const std::vector<float>* profile = nullptr;   // feature::cpu_profile_row, of a program that ran
};

// What a model reads of a query beside its workload and device; the rest may be null.
struct ModelInputs {
  bool rows = false, leaves = false, trace = false;
  bool profile = false;  // what a profiler counted: such a model says nothing of programs that never ran
};

// What a model is asked about and has not been trained on.
struct Unseen {
  bool device = false;
  bool threads = false;  // as many CPU cores
  bool kind = false;     // programs of this kind of device or structure: a physical estimate stands in
  bool size = false;     // workloads as small or large; matters on devices that are not known
  bool any() const { return device || threads || kind; }
  friend bool operator==(const Unseen&, const Unseen&) = default;
};

struct Prediction {
  double seconds = 0;  // +inf where the model says that the program cannot run
  // Standard deviation of log(seconds): 68.27 % of what is measured lies within it. Calibrated on programs
  // that the fit has not seen, of devices that it has not seen where the query's is none of them; 0: the
  // model does not know.
  double log_sigma = 0;
  // The expected time of a typical run, to add up over programs; 0: the model knows no better than `seconds`,
  // which is where the percentage error is lowest.
  double mean_seconds = 0;
  // To rank programs of one task on one device by, where the model has more to say of their order than `seconds` does; 0: it has not.
  double ranking_seconds = 0;
  // Half the width of the intervals of log(seconds) that hold 90 and 95.45 %; 0: as of a normal distribution
  // with log_sigma. Measured errors have longer tails.
  double log_90 = 0, log_95 = 0;
  // Standard deviation of log(seconds) among the members of the model, which have learned the same from other draws; 0: it has none.
  // Says which tasks the model errs on (`dataset next`), not by how much.
  double disagreement = 0;
  Unseen unseen;

  double ranked() const { return ranking_seconds > 0 ? ranking_seconds : seconds; }
  double half90() const { return log_90 > 0 ? log_90 : 1.6449 * log_sigma; }
  double half95() const { return log_95 > 0 ? log_95 : 2 * log_sigma; }
};

// A device that a model was trained on. Zero and empty: not known, of a file that names its devices only.
struct SeenDevice {
  std::string name;
  target::DeviceKind kind = target::DeviceKind::kCpu;
  std::string cpu, arch;
  int cores = 0, vector_bytes = 0;
  double clock_ghz = 0, memory_bandwidth_gbs = 0;
  friend bool operator==(const SeenDevice&, const SeenDevice&) = default;
};

// How far predictions were off where something was left out of training; logarithms of measured / predicted
// seconds.
struct HeldOutError {
  double shift = 0;                              // their median
  double log_sigma = 0, log_90 = 0, log_95 = 0;  // half widths around the shift (Prediction)
  double other_sizes =
      1;            // for workloads of sizes that training did not have the widths are so many times as large
  int devices = 0;  // that were left out
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

struct MeasuredProgram {
  ProgramQuery program;
  double seconds = 0;  // +inf: failed
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  // In the order of the queries; kInvalidArgument for a query that the model cannot take. Thread-safe, and
  // works on the calling thread alone: callers give batches from several threads.
  virtual Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const = 0;
  virtual ModelInputs inputs() const { return {.leaves = true}; }
  // Models that rank only give seconds that compare within one task and device; their errors in seconds mean
  // nothing.
  virtual bool ranks_only() const { return false; }
  virtual const ModelCard& card() const = 0;
  // Replaces the file at once or not at all (learn/latency/model_file.h describes the format). kUnsupported
  // for what was learned during a search.
  virtual Status save(const std::string& path) const = 0;

  // Whether predictions mean anything so far.
  virtual bool ready() const { return true; }
  // Whether update() changes anything.
  virtual bool learns() const { return false; }
  // Takes all programs that a search measured so far in place of those of the last call. Programs keep their
  // addresses from call to call. Not while others predict. An error leaves the model as it was.
  virtual Status update(std::span<const MeasuredProgram>) { return {}; }
};

struct UntrainedOptions {
  uint64_t seed = 0;
  int threads = 1;  // of what learns during a search
};
// Names of the kinds that need no file: those that are never trained, and those that learn during a search.
std::vector<std::string> untrained_kinds();
// A model of one of them; kUnsupported for other kinds.
Result<std::unique_ptr<CostModel>> make_untrained(const std::string& kind, const UntrainedOptions& options);

// Whether the queries of load_cost_model's caller have profiles.
enum class QueryProfiles : uint8_t { kNone, kGiven };
// kCorrupt for a damaged file, kMismatch for one of another schema or version; kUnsupported for a model that reads
// profiles where there are none.
Result<std::unique_ptr<CostModel>> load_cost_model(const std::string& path,
                                                   QueryProfiles profiles = QueryProfiles::kNone);

}  // namespace tensorsmith::learn
