// Writes a store of programs labelled with the times that a model predicts for a device. Another
// model of that device is trained on it before it learns from the few programs that were measured
// there (distillation from device to device).
#pragma once

#include <cstdint>
#include <string>

#include "engine/predict/model_data.h"
#include "learn/cost_model.h"
#include "target/target.h"

namespace tensorsmith::lab {

struct LabelledPrograms {
  int64_t labelled = 0;  // programs with the model's predicted time
  int64_t measured = 0;  // programs measured on the device, with their measured time
  int64_t refused = 0;   // left out: the model says that they cannot run on the device
  int64_t unknown = 0;   // left out: the model has seen no program of their kind (learn::Unseen::kind)
};

// Takes each program of the store that ran on a device of the same kind once; with a split, only
// programs of its training and validation parts. The store at `output` is replaced atomically.
// kNotFound if there are no programs; kMismatch if the model knows the kind of none of them;
// kUnsupported for a model that only ranks.
Result<LabelledPrograms> label_programs(const engine::ModelData& data, const learn::Split* split,
                                        const learn::CostModel& model, const target::Device& device,
                                        const std::string& output);

}  // namespace tensorsmith::lab
