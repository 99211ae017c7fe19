// The process that runs candidates on a device. It owns the device's context: if a kernel breaks
// the context or hangs, the parent ends the process and starts another. Unlike worker.h's process
// it is not confined, since drivers open files; its memory and time are limited.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/device/gpu.h"

namespace tensorsmith::measure {

struct DeviceArguments {
  runtime::GpuPlace place;
  std::string driver;  // path; empty: found by the loader
};

// Returns the last arguments of a device worker's command line.
std::vector<std::string> device_arguments(const DeviceArguments& device);

// Serves requests (measure/protocol.h) on the socket until the parent closes it, and prints errors of the
// device. Returns the exit code, or nothing if the command line is not that of a device worker.
std::optional<int> serve_device(int socket, int argc, char** argv);

}  // namespace tensorsmith::measure
