// The base of Tensorsmith's own latency model (learn/latency/tensorsmith_model.h).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "feature/program_summary.h"
#include "learn/latency/tensorsmith_data.h"

namespace tensorsmith::learn {

enum class BaseFormula : uint8_t {
  kResources,  // the fitted sum of resource times
  kRoofline,   // max(operations / peak, bytes / bandwidth)
  kNone,       // constant: one second
};

// For each device number, one value per structure that was fitted and had factors before: the
// logarithm of measured seconds / seconds predicted by those earlier factors.
using DeviceScales = std::map<uint32_t, std::vector<double>>;

// Estimates the seconds of a program of one kind before any tree corrects them: as the sum of the
// times of its resources (feature/program_summary.h), with factors fitted to the structure of its
// computation and to its device.
class TensorsmithBase {
 public:
  BaseFormula formula = BaseFormula::kResources;

  double seconds(const feature::ProgramSummary& program, const std::string& device) const;
  // Returns the factors fitted to `device`, else those fitted to all devices together, else (in
  // older files) the mean over the devices that know the structure, else an empty vector.
  std::vector<double> factors(feature::WorkloadStructure structure, const std::string& device) const;
  bool knows_structure(feature::WorkloadStructure structure) const;
  bool knows_device(const std::string& device) const;
  // device: empty for factors fitted to all devices together.
  void set(feature::WorkloadStructure structure, const std::string& device, std::vector<double> factors);

  // Fits new factors for each structure and device among the chosen programs. goes_on: the present
  // factors serve as a prior: those of the device, else those of all devices together (or their
  // mean over devices), multiplied by the scale that fits the device. The fewer tasks there are, the
  // more the prior weighs.
  DeviceScales fit(const ChosenPrograms& programs, const TrainingData& source, uint64_t seed, bool goes_on);
  // Adds factors for structures that a device in `anywhere` has not shown but the base knows from
  // other devices: the factors of all devices together (or their mean over devices), multiplied by
  // the device's median scale among programs of this kind (`here`), else among all programs.
  void complete(const DeviceScales& here, const DeviceScales& anywhere, const TrainingData& source);

  nlohmann::json to_json() const;
  // Reads `width` factors for each entry. Throws JSON exceptions.
  Status read(const nlohmann::json& json, size_t width);

 private:
  struct Entry {
    feature::WorkloadStructure structure{};
    std::string device;
    std::vector<double> factors;  // in the order of the resources of feature::summary_schema
  };
  const std::vector<double>* fitted(feature::WorkloadStructure structure, const std::string& device) const;
  // Like factors(), without a copy. scratch: storage for the mean. Returns nullptr if there are none.
  const std::vector<double>* find(feature::WorkloadStructure structure, const std::string& device,
                                  std::vector<double>& scratch) const;

  std::vector<Entry> entries_;
};

}  // namespace tensorsmith::learn
