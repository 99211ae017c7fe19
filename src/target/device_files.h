// The compiled-in device files. Internal to the room.
#pragma once

#include <span>
#include <string_view>

namespace tensorsmith::target {

struct DeviceFile {
  std::string_view name;  // file name
  std::string_view text;  // JSON
};
// Sorted by the devices' names.
std::span<const DeviceFile> device_files();

}  // namespace tensorsmith::target
