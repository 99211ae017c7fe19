// Our own latency model. A program's seconds are estimated as a sum of its resources' times on the device
// (feature/program_summary.h), with factors fitted for each device and structure of computation; boosted
// trees learn what that sum leaves, as a logarithm, from the resources' shares and the shape of the tiles.
// So every prediction scales with the device's clocks and bandwidths, and the trees, which learn from all
// devices together, correct it.
//
// A device that was not seen has the factors that were fitted to all devices of the kind together, and a part of what small forests,
// one a known device, learned of these factors' errors there: the more, the more alike the devices are
// (learn/latency/device_similarity.h).
//
//   log seconds = log base + mean over the members of (sum of trees) - shift
//
// The members learn the mean percentage error, to which a program that is ten times slower than predicted is
// one wrong by 90 % and no worse. The rank members learn by a loss that minds it (Huber's). Programs are ranked by
//
//   log base + (1 - w) mean over the members + w mean over the rank members - shift
//
// so that those that may spill registers stay away from the first places (docs/decisions/015-latency-model.md).
//
// Shifts and standard deviation are calibrated for each device, kind and structure of program on programs
// whose workloads the fit has not seen: the mean percentage error is lowest below the median where the spread
// is large, while sums of programs need the mean.
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
  kResources,  // the fitted sum
  kRoofline,   // max(operations / peak, bytes / bandwidth)
  kNone,       // one second
};

// The resources' factors of one kind of program.
struct ResourceFactors {
  struct Entry {
    feature::WorkloadStructure structure{};
    std::string device;           // empty: of all devices together
    std::vector<double> factors;  // by the resources of feature::summary_schema
  };
  std::vector<Entry> entries;

  // Of this device; else those of all together; else (files of before) the mean of the devices that know the structure; else
  // nullptr. scratch holds a mean.
  const std::vector<double>* find(feature::WorkloadStructure structure, const std::string& device,
                                  std::vector<double>& scratch) const;
  bool knows_device(const std::string& device) const;
};

// What the factors of all devices miss on one of them.
struct DeviceForest {
  std::string device;
  DeviceTraits traits;
  Forest forest;
};

// What a device has shown of a structure that training went on with.
struct ShownTasks {
  int workloads = 0;
  double shift = 0;  // what log(seconds) of the common prediction lacks there
};

struct TensorsmithKind {
  ResourceFactors factors;
  std::vector<Forest> members, rank_members;
  std::vector<DeviceForest> devices;  // for devices that are not among them
  // By device that was new when training went on, and structure.
  std::map<std::string, std::map<feature::WorkloadStructure, ShownTasks>> shown;
};

struct Calibration {
  double shift = 0, log_sigma = 0;
  double mean_shift = 0;          // instead of shift, for Prediction::mean_seconds
  double log_90 = 0, log_95 = 0;  // as in Prediction
};
struct CalibrationKey {
  feature::ProgramKind kind{};
  feature::WorkloadStructure structure{};
  std::string device;
  auto operator<=>(const CalibrationKey&) const = default;
};

// A program as the model sees it.
struct SummarizedProgram {
  feature::ProgramSummary summary;
  feature::WorkloadStructure structure{};
  double base = 1;  // seconds
};

class TensorsmithModel final : public CostModel {
 public:
  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override;
  ModelInputs inputs() const override { return {.leaves = true, .trace = true}; }
  const ModelCard& card() const override { return model_card; }
  Status save(const std::string& path) const override;
  static Result<std::unique_ptr<CostModel>> from_file(ModelFile file);

  // Whether any device of the training part showed such programs. Without, neither factors nor trees mean
  // anything, and the roofline stands in.
  bool knows(feature::ProgramKind kind, feature::WorkloadStructure structure) const;
  double base_seconds(const feature::ProgramSummary& summary, feature::WorkloadStructure structure,
                      const std::string& device) const;
  // The trees' columns: logarithms of the resources' shares of the base, the summary's columns, the base over
  // the roofline. width of them. Columns of the workload's size are 0, but with base=none they are
  // kept: few trained workloads have the same, so trees would learn each one's own error by them (docs/decisions/015-latency-model.md).
  void append_row(const SummarizedProgram& program, std::vector<float>& out) const;
  // The same without what tells devices or sizes of workloads apart, whatever the base, for the forests of TensorsmithKind::devices.
  void append_general_row(const SummarizedProgram& program, std::vector<float>& out) const;
  // Whether these forests speak for programs of this kind on the device.
  bool is_new_device(feature::ProgramKind kind, const std::string& device) const;
  // log(seconds), without calibration, of programs of one kind on one device; sets their bases. Of a device that was new when training
  // went on, the mean of its own prediction and of the common one.
  // ranks, where it is not empty: likewise, to rank by.
  void log_seconds(feature::ProgramKind kind, const target::Device& device,
                   std::span<SummarizedProgram> programs, std::span<double> out,
                   std::span<double> disagreement = {}, std::span<double> ranks = {}) const;
  // Likewise as if the device was not known, and without its shift.
  void common_log_seconds(feature::ProgramKind kind, const target::Device& device,
                          std::span<SummarizedProgram> programs, std::span<double> out,
                          std::span<double> disagreement = {}) const;
  static int width(feature::ProgramKind kind);
  static std::string column_name(feature::ProgramKind kind, size_t column);
  // Without the shift; rows: of one kind, as append_row makes them. out: sum to add to log base. Where they are not
  // empty, disagreement: Prediction's; ranks: the sum to rank by.
  void add_trees(feature::ProgramKind kind, std::span<const float> rows, std::span<double> out,
                 std::span<double> disagreement = {}, std::span<double> ranks = {}) const;
  // Likewise for a new device, whose rows append_general_row has made.
  void add_device_trees(feature::ProgramKind kind, const target::Device& device, std::span<const float> rows,
                        std::span<double> out, std::span<double> disagreement = {}) const;
  Calibration calibration_of(feature::ProgramKind kind, feature::WorkloadStructure structure,
                             const std::string& device) const;

  ModelCard model_card;
  TensorsmithBase base = TensorsmithBase::kResources;
  bool device_columns = true;
  double rank_weight = 0;  // w, of 0 .. 1; used where there are members of both sorts
  std::array<TensorsmithKind, feature::kProgramKinds> kinds;
  std::map<CalibrationKey, Calibration> calibrations;
  // Operations of the smallest and the largest workload of the training part (StoredWorkload::flops).
  std::map<std::pair<feature::ProgramKind, feature::WorkloadStructure>, std::pair<double, double>> sizes;
};

// Accesses of the workloads of queries, each analyzed once. A workload whose text cannot be read is known by
// its flops alone.
class AccessCache {
 public:
  const feature::WorkloadAccess& of(const StoredWorkload& workload);

 private:
  std::map<const StoredWorkload*, feature::WorkloadAccess> known_;
};

}  // namespace tensorsmith::learn
