// What stands in for figures that a device file leaves out. Nothing of it is known of the device, so whoever
// predicts from such a file names it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "target/target.h"

namespace tensorsmith::target {

// Of an ordinary CPU.
inline constexpr double kAssumedClockGhz = 2;
inline constexpr double kAssumedBandwidthGbs = 20;
// From memory, of one core beside others.
inline constexpr double kAssumedBytesPerCycle = 6;

struct AssumedAttribute {
  std::string name;   // as in a device file
  std::string value;  // with its unit
};

// Attributes that decide how long a program takes and that the device of this specification (as find_device
// takes it) does not have: left out of its file, or not known of a probed machine. With what stands in for
// them. Errors as of find_device.
Result<std::vector<AssumedAttribute>> assumed_attributes(std::string_view spec, const Device& device);

// "l2_bytes 262144, memory_bandwidth_gbs 20"; empty for none.
std::string to_string(const std::vector<AssumedAttribute>& attributes);

// The device with these figures put in for those that are 0.
Device with_assumed_figures(Device device);
// The rates with those of a usual out-of-order core put in for those that are 0.
CoreRates with_assumed_rates(CoreRates rates);
// The device with the rates of a usual out-of-order core put in for those that are 0, and with a clock and a
// bandwidth that fit them. They decide which schedule is thought fastest and are no basis of predictions.
Device with_assumed_rates(Device device);

// Names among the members of a device file's text that this one does not have. kCorrupt: no JSON object.
Result<std::vector<std::string>> left_out_attributes(std::string_view text);
// Whether find_device takes the name for that of a file.
bool is_device_file(std::string_view name);
// The text of a device file. kNotFound, kIo, kCorrupt (too large).
Result<std::string> read_device_text(const std::string& path);

}  // namespace tensorsmith::target
