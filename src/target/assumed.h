// Default values for attributes that a device file leaves out. The device itself says nothing about
// them, so whoever predicts from such a file reports which values were assumed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "target/target.h"

namespace tensorsmith::target {

struct AssumedAttribute {
  std::string name;   // name of the attribute in a device file
  std::string value;  // the assumed value with its unit
};

// Returns the attributes that decide how long a program takes and whose values are unknown: those
// that the device file leaves out, or those that probing this machine did not find. Each comes with
// the value that is assumed for it. `spec` is what find_device accepts; the errors are those of
// find_device.
Result<std::vector<AssumedAttribute>> assumed_attributes(std::string_view spec, const Device& device);

// Formats as "l2_bytes 262144, memory_bandwidth_gbs 20"; empty if there are none.
std::string to_string(const std::vector<AssumedAttribute>& attributes);

// The figures of a device that have a default. Small to copy: predictions make them for each program.
struct Figures {
  explicit Figures(const Device& device);
  DeviceKind kind;
  double clock_ghz, bandwidth_gbs, peak_f32_gflops, fma_per_cycle;
  int64_t l1_bytes, l2_bytes;
  CoreRates rates;
  int cores, vector_bytes;  // what a missing peak follows from, with the clock and the FMAs
};
// Replaces figures that are 0. A CPU gets those of a typical out-of-order core: 2 GHz, 20 GB/s, one FMA
// per cycle, 32 KiB of L1, 256 KiB of L2, and its rates; a GPU gets 1 GHz and 100 GB/s. A missing peak
// follows from the clock, the cores and their FMAs.
Figures with_assumed(Figures figures);
// Replaces the same figures of the device.
Device with_assumed_figures(Device device);

// Returns the names of the attributes that the text of a device file leaves out. kCorrupt: not a
// JSON object.
Result<std::vector<std::string>> left_out_attributes(std::string_view text);
// Returns whether find_device treats `name` as a file name.
bool is_device_file(std::string_view name);
// Reads the text of a device file. Errors: kNotFound, kIo, kCorrupt (too large).
Result<std::string> read_device_text(const std::string& path);

}  // namespace tensorsmith::target
