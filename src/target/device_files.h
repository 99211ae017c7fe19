// The device files that are compiled into the program. Internal to src/target.
#pragma once

#include <span>
#include <string_view>

namespace tensorsmith::target {

struct DeviceFile {
  std::string_view name;  // file name
  std::string_view text;  // JSON
};
// Returns the files, sorted by the names of the devices.
std::span<const DeviceFile> device_files();

}  // namespace tensorsmith::target
