// The adaptation to a new device of Tensorsmith's own latency model
// (learn/latency/tensorsmith_model.h).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "learn/gbt/forest.h"
#include "learn/latency/device_similarity.h"
#include "learn/latency/tensorsmith_rows.h"
#include "learn/tensor_file.h"

namespace tensorsmith::learn {

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

// Predicts programs of one kind on a device that training has not seen, or of which it has seen few
// workloads, by the factors that the base has for all devices together and a part of what small
// forests have learned of their errors on similar devices.
struct TensorsmithAdaptation {
  std::vector<DeviceForest> forests;  // one for each device of the training data
  // By device that was new when training continued, then by structure.
  std::map<std::string, std::map<feature::WorkloadStructure, ShownTasks>> shown;

  // Whether programs on the device are predicted by this object alone.
  bool covers(const TensorsmithBase& base, const std::string& device) const;
  // Sets log(seconds), without calibration, as if the device were unknown. disagreement: if not
  // empty, receives Prediction::disagreement.
  void log_seconds(const TensorsmithBase& base, const target::Device& device,
                   std::span<const feature::ProgramSummary> programs, std::span<double> out,
                   std::span<double> disagreement = {}) const;
  // Mixes the common prediction into the device's own, `out` and `ranks` (which may be empty), if
  // the device was new when training continued.
  void mix(const TensorsmithBase& base, const target::Device& device,
           std::span<const feature::ProgramSummary> programs, std::span<double> out,
           std::span<double> ranks) const;

  // Returns the rows that the forest of one device is fitted to, from programs of this device.
  static PackSumData training_rows(const TensorsmithBase& base, const ChosenPrograms& programs);
  void set(DeviceForest forest);
  // Adds to `shown` the programs of devices that the model to continue from (`before_base` and
  // `before`) did not know.
  void note_shown(const TensorsmithBase& before_base, const TensorsmithAdaptation& before,
                  const ChosenPrograms& programs, const TrainingData& source);

  // Adds the entries of the file's description and the trees' tensors.
  void write(TensorFile& file, feature::ProgramKind kind, nlohmann::json& item) const;
  // Throws JSON exceptions.
  Status read(const TensorFile& file, feature::ProgramKind kind, const nlohmann::json& item);
};

}  // namespace tensorsmith::learn
