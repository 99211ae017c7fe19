// The process that runs candidates on a device. It owns the device's context: after a kernel that breaks it, or that
// does not end, the parent ends the process and another goes on. It is not confined as worker.h's is, since drivers
// open files; its memory and time are limited.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/device/gpu.h"

namespace tensorsmith::measure {

struct DeviceArguments {
  runtime::GpuApi api = runtime::GpuApi::kCuda;
  int index = 0;
  std::string driver;  // its file; empty: where the loader finds it
};

// The last arguments of a device's worker, and of a program that was started with them.
std::vector<std::string> device_arguments(const DeviceArguments& device);
std::optional<DeviceArguments> parse_device_arguments(int argc, char** argv);

// Serves requests (measure/protocol.h) on the socket until the parent closes it. The exit code; what is wrong with the
// device is printed.
int serve_device(int socket, const DeviceArguments& device);

}  // namespace tensorsmith::measure
