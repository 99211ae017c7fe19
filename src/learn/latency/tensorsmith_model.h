// Tensorsmith's own latency model. It estimates a program's seconds as a sum of the times of its
// resources on the device (feature/program_summary.h), with factors fitted for each device and
// structure of computation. Boosted trees learn the logarithm of what this sum leaves unexplained,
// from the resources' shares and the shape of the tiles. So every prediction scales with the
// device's clocks and bandwidths, and the trees, trained on all devices together, correct it.
//
// A device without training data uses the factors fitted to all devices of its kind together. Small
// forests, one per known device, have learned the errors of these common factors on their device. A
// part of the forests' weighted mean is added, where similar devices have larger weights
// (learn/latency/device_similarity.h).
//
//   log seconds = log base + mean over the members of (sum of trees) - shift
//
// The members minimize the mean percentage error, by which a program that is ten times slower than
// predicted counts as wrong by 90 %, no more. The rank members use Huber's loss, which penalizes
// such programs more. Programs are ranked by
//
//   log base + (1 - w) mean over the members + w mean over the rank members - shift
//
// so that programs that may spill registers do not reach the first places
// (docs/decisions/015-latency-model.md).
//
// Shifts and standard deviations are calibrated for each device, kind and structure of program, on
// programs whose workloads the fit has not seen. There are two shifts: where the spread is large,
// the mean percentage error is lowest below the median, while a sum over programs needs the mean.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "feature/program_summary.h"
#include "learn/gbt/forest.h"
#include "learn/latency/device_similarity.h"
#include "learn/latency/kinds.h"

namespace tensorsmith::learn {

enum class TensorsmithBase : uint8_t {
  kResources,  // the fitted sum of resource times
  kRoofline,   // max(operations / peak, bytes / bandwidth)
  kNone,       // constant: one second
};

// Factors of the resources of one kind of program.
struct ResourceFactors {
  struct Entry {
    feature::WorkloadStructure structure{};
    std::string device;           // empty: fitted to all devices together
    std::vector<double> factors;  // in the order of the resources of feature::summary_schema
  };
  std::vector<Entry> entries;

  // Returns the factors fitted to `device`, else those fitted to all devices together, else (in
  // older files) the mean over the devices that know the structure, else nullptr. scratch: storage
  // for that mean.
  const std::vector<double>* find(feature::WorkloadStructure structure, const std::string& device,
                                  std::vector<double>& scratch) const;
  bool knows_device(const std::string& device) const;
};

// A forest that has learned the errors of the common factors on one device.
struct DeviceForest {
  std::string device;
  DeviceTraits traits;
  Forest forest;
};

// Data of one structure on a device that was new when training continued from an earlier model.
struct ShownTasks {
  int workloads = 0;
  double shift = 0;  // mean of log(measured / common prediction), shrunk towards 0
};

struct TensorsmithKind {
  ResourceFactors factors;
  std::vector<Forest> members, rank_members;
  std::vector<DeviceForest> devices;  // used for devices that are not among them
  // By device that was new when training continued, then by structure.
  std::map<std::string, std::map<feature::WorkloadStructure, ShownTasks>> shown;
};

struct Calibration {
  double shift = 0, log_sigma = 0;
  double mean_shift = 0;          // used instead of `shift` for Prediction::mean_seconds
  double log_90 = 0, log_95 = 0;  // as in Prediction
};
struct CalibrationKey {
  feature::ProgramKind kind{};
  feature::WorkloadStructure structure{};
  std::string device;
  auto operator<=>(const CalibrationKey&) const = default;
};

// A program in the form that the model reads.
struct SummarizedProgram {
  feature::ProgramSummary summary;
  feature::WorkloadStructure structure{};
  double base = 1;  // in seconds
};

class TensorsmithModel final : public CostModel {
 public:
  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override;
  ModelInputs inputs() const override { return {.leaves = true, .trace = true, .summary = true}; }
  const ModelCard& card() const override { return model_card; }
  Status save(const std::string& path) const override;
  static Result<std::unique_ptr<CostModel>> from_file(ModelFile file);

  // Returns whether the training part had such programs on any device. If not, neither factors nor
  // trees are meaningful, and the roofline is used instead.
  bool knows(feature::ProgramKind kind, feature::WorkloadStructure structure) const;
  double base_seconds(const feature::ProgramSummary& summary, feature::WorkloadStructure structure,
                      const std::string& device) const;
  // Appends the columns that the trees read, `width` of them: logarithms of the resources' shares
  // of the base, the summary's columns, and base / roofline. Columns that depend on the workload's
  // size are set to 0 except with base=none: few training workloads share a size, so trees would
  // use these columns to memorize the error of each workload (docs/decisions/015-latency-model.md).
  void append_row(const SummarizedProgram& program, std::vector<float>& out) const;
  // Like append_row, but for the forests of TensorsmithKind::devices: columns that identify the
  // device or the size of the workload are always 0, for every base.
  void append_general_row(const SummarizedProgram& program, std::vector<float>& out) const;
  // Returns whether programs of this kind on the device are predicted by the forests of
  // TensorsmithKind::devices.
  bool is_new_device(feature::ProgramKind kind, const std::string& device) const;
  // Computes log(seconds), without calibration, for programs of one kind on one device, and sets
  // their bases. For a device that was new when training continued, this is a weighted mean of the
  // device's own prediction and the common one. ranks: if not empty, receives the logarithms to
  // rank by.
  void log_seconds(feature::ProgramKind kind, const target::Device& device,
                   std::span<SummarizedProgram> programs, std::span<double> out,
                   std::span<double> disagreement = {}, std::span<double> ranks = {}) const;
  // Like log_seconds, but as if the device were unknown, and without the shift of ShownTasks.
  void common_log_seconds(feature::ProgramKind kind, const target::Device& device,
                          std::span<SummarizedProgram> programs, std::span<double> out,
                          std::span<double> disagreement = {}) const;
  static int width(feature::ProgramKind kind);
  static std::string column_name(feature::ProgramKind kind, size_t column);
  // Adds the trees' sums for rows that append_row has made, all of one kind, without the shift.
  // out: receives the term to add to log base. If not empty, disagreement receives
  // Prediction::disagreement, and ranks the term to rank by.
  void add_trees(feature::ProgramKind kind, std::span<const float> rows, std::span<double> out,
                 std::span<double> disagreement = {}, std::span<double> ranks = {}) const;
  // Like add_trees, but for a new device, with rows that append_general_row has made.
  void add_device_trees(feature::ProgramKind kind, const target::Device& device, std::span<const float> rows,
                        std::span<double> out, std::span<double> disagreement = {}) const;
  Calibration calibration_of(feature::ProgramKind kind, feature::WorkloadStructure structure,
                             const std::string& device) const;

  ModelCard model_card;
  TensorsmithBase base = TensorsmithBase::kResources;
  bool device_columns = true;
  double rank_weight = 0;  // w, in [0, 1]; used if there are members of both sorts
  std::array<TensorsmithKind, feature::kProgramKinds> kinds;
  std::map<CalibrationKey, Calibration> calibrations;
  // Operations of the smallest and the largest training workload (StoredWorkload::flops).
  std::map<std::pair<feature::ProgramKind, feature::WorkloadStructure>, std::pair<double, double>> sizes;
};

// Caches the access analysis of the workloads of queries. For a workload whose text cannot be
// parsed only the flops are known.
class AccessCache {
 public:
  const feature::WorkloadAccess& of(const StoredWorkload& workload);

 private:
  std::map<const StoredWorkload*, feature::WorkloadAccess> known_;
};

}  // namespace tensorsmith::learn
