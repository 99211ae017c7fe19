// The interface of neural latency models, in libtorch. Internal to learn/net.
#pragma once

#include "learn/net/batch.h"
#include "learn/net/layers.h"

namespace tensorsmith::learn::net {

// The programs of one kind in a batch (SummaryRows), as tensors.
struct SummaryInput {
  Tensor places, structure;  // [n] int64
  Tensor values;             // [n, summary_width()]
};

struct NetInput {
  int64_t programs = 0;
  Ragged rows;
  Tensor row_values;  // [rows, feature::kPerStoreWidth], not scaled
  Tensor positions;   // [rows] int64
  Ragged steps;
  Tensor step_values;      // [steps, StepOptions::width()]
  Tensor device;           // [programs] int64, -1: not a training device
  Tensor device_features;  // [programs, kDeviceColumns]
  std::array<SummaryInput, feature::kProgramKinds> summaries;

  static NetInput create(const Batch& batch, const BatchOptions& options, torch::Device device);
};

struct NetOutput {
  Tensor value;   // [programs]: the z of LabelTransform; larger is slower
  Tensor hidden;  // [programs, width]: input of the last layer
};

class Net : public torch::nn::Module {
 public:
  virtual NetOutput forward(const NetInput& input) = 0;
  // Sets the scaling of the network's inputs.
  virtual void set_scaling(const InputScaling& scaling) = 0;
  // Renumbers the devices: device d becomes a copy of the former device from[d]. Several may be
  // copies of the same one. Does nothing in networks that distinguish devices only by their
  // features.
  virtual void set_devices(const std::vector<int64_t>& from) { (void)from; }
};

}  // namespace tensorsmith::learn::net
