// Devices as records and models need them: with the attributes that only a measurement tells.
#pragma once

#include "record/database.h"
#include "target/target.h"

namespace tensorsmith::engine {

// True for this machine and weaker variants of it.
bool is_local(const target::Device& device);

// True for what programs can be measured on: those, and GPUs of this machine.
bool is_measurable(const target::Device& device);

// The device with this many cores, and its peak rate in proportion; 0 = as it is.
target::Device with_threads(target::Device device, int threads);

// The device with its memory bandwidth and clock measured, if it is local and has none (a few tenths of a second each); a GPU of this
// machine with what with_gpu_measurements() measures.
target::Device with_measurements(target::Device device);

// Describes a local device in the database with its measured attributes, unless it is there.
Status register_device(const target::Device& device, record::Database& database);

// As the database describes the device, so that a model sees the attributes that it was trained with; what it lacks, or all of them where
// it does not know the device, by with_measurements().
Result<target::Device> described_device(const target::Device& device, record::Database& database);

}  // namespace tensorsmith::engine
