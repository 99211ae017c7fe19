// A store of programs with the times that a model expects of them on a device: what another model of that device is trained on before
// it learns from the few programs that were measured there (distillation from device to device).
#pragma once

#include <cstdint>
#include <string>

#include "engine/model_data.h"
#include "learn/cost_model.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct LabelledPrograms {
  int64_t labelled = 0;  // with the model's time
  int64_t measured = 0;  // on the device itself, with their time
  int64_t refused = 0;   // left out: the model says that they cannot run there
  int64_t unknown = 0;   // left out: the model has seen no program of their kind (learn::Unseen::kind)
};

// Each program of the store that ran on a device of the kind, once. With a split, only those of its training and validation part.
// The store at output is replaced at once or not at all. kNotFound where there is no program; kMismatch where the model knows the
// kind of none; kUnsupported for a model that only ranks.
Result<LabelledPrograms> label_programs(const ModelData& data, const learn::Split* split,
                                        const learn::CostModel& model, const target::Device& device,
                                        const std::string& output);

}  // namespace tensorsmith::engine
