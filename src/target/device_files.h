// The compiled-in device files. Internal to the room.
#pragma once

#include <span>
#include <string_view>

#include "target/target.h"

namespace tensorsmith::target {

struct DeviceFile {
  std::string_view name;  // file name
  std::string_view text;  // JSON
};
// Sorted by name.
std::span<const DeviceFile> device_files();

// One device file: every attribute of Device by its member's name; those that do not apply may be missing,
// unknown ones are errors. place names the file in errors.
Result<Device> parse_device(std::string_view text, std::string_view place);

}  // namespace tensorsmith::target
