// The interface of neural latency models, in libtorch. Internal to learn/net.
#pragma once

#include "learn/net/batch.h"
#include "learn/net/layers.h"

namespace tensorsmith::learn::net {

// A batch as tensors.
// The programs of one kind in a batch (SummaryRows).
struct SummaryInput {
  Tensor places, structure;  // [n] int64
  Tensor values;             // [n, summary_width()]
};

struct NetInput {
  int64_t programs = 0;
  Ragged rows;
  Tensor row_values;  // [rows, feature::kPerStoreWidth], as extracted
  Tensor positions;   // [rows] int64
  Ragged steps;
  Tensor step_values;      // [steps, StepOptions::width()]
  Tensor device;           // [programs] int64, -1: not among those trained on
  Tensor device_features;  // [programs, kDeviceColumns]
  std::array<SummaryInput, feature::kProgramKinds> summaries;

  static NetInput create(const Batch& batch, const BatchOptions& options, torch::Device device);
};

struct NetOutput {
  Tensor value;   // [programs]: LabelTransform's z; larger is slower
  Tensor hidden;  // [programs, width]: what the last layer reads
};

class Net : public torch::nn::Module {
 public:
  virtual NetOutput forward(const NetInput& input) = 0;
  // Sets the scaling of what the net reads.
  virtual void set_scaling(const InputScaling& scaling) = 0;
  // Renumbers the devices: number d is what from[d] was, and may be several times. Nets that tell devices by
  // their features only have nothing to do.
  virtual void set_devices(const std::vector<int64_t>& from) { (void)from; }
};

}  // namespace tensorsmith::learn::net
