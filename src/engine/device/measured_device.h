// Completes devices by the attributes that only a measurement provides, as records and models need
// them.
#pragma once

#include <string_view>

#include "record/database.h"
#include "target/target.h"

namespace tensorsmith::engine {

// True for this machine and for weaker variants of it.
bool is_local(const target::Device& device);

// True for devices that programs can be measured on: local ones, and GPUs of this machine.
bool is_measurable(const target::Device& device);
// Returns kUnsupported, with the devices to use instead, unless the device is measurable. work: names what
// measures, as the subject of the message ("tuning").
Status check_measurable(const target::Device& device, std::string_view work);

// Returns the device with `threads` cores and its peak rate scaled in proportion; 0 = unchanged.
target::Device with_threads(target::Device device, int threads);

// Returns a local device with its memory bandwidth and clock measured if they are unknown (a few
// tenths of a second each), or a GPU of this machine with its attributes from
// with_gpu_measurements().
target::Device with_measurements(target::Device device);

// Stores the description of a local device, with its measured attributes, unless the database has
// it.
Status register_device(const target::Device& device, record::Database& database);

// Returns the device as the database describes it, so that a model sees the attributes that it was
// trained with. Attributes that the database lacks, or all of them for an unknown device, come from
// with_measurements().
Result<target::Device> described_device(const target::Device& device, record::Database& database);

}  // namespace tensorsmith::engine
