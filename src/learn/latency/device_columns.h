// A device as numbers, for models that learn from several devices.
#pragma once

#include <array>

#include "target/target.h"

namespace tensorsmith::learn {

inline constexpr int kDeviceColumns = 16;
// Logarithms to base 2 of x + 1 (so that 0, "none" or "not known", stays 0), except device.gpu: 0 or 1. All
// finite.
std::array<float, kDeviceColumns> device_columns(const target::Device& device);
const char* device_column_name(int column);

}  // namespace tensorsmith::learn
