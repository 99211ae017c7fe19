#include "runtime/device/launch_checks.h"

namespace tensorsmith::runtime {
namespace {

std::string text(const std::array<int64_t, 3>& extents) {
  return std::to_string(extents[0]) + " x " + std::to_string(extents[1]) + " x " + std::to_string(extents[2]);
}

Error error(ErrorCode code, const Launch& launch, std::string reason) {
  return Error{code, "kernel " + launch.symbol, std::move(reason)};
}

// A limit of 0 means that the driver does not report it.
bool fits(const std::array<int64_t, 3>& extents, const std::array<int64_t, 3>& most) {
  for (size_t i = 0; i < 3; ++i) {
    if (extents[i] < 1 || (most[i] > 0 && extents[i] > most[i])) return false;
  }
  return true;
}

Status check_extents(const GpuProperties& device, const Launch& launch) {
  if (!fits(launch.block, device.max_block)) {
    return error(ErrorCode::kUnsupported, launch,
                 "a block of " + text(launch.block) + " threads; each extent must be 1 to " +
                     text(device.max_block) + " on " + device.name);
  }
  if (!fits(launch.grid, device.max_grid)) {
    return error(ErrorCode::kUnsupported, launch,
                 "a grid of " + text(launch.grid) + " blocks; each extent must be 1 to " +
                     text(device.max_grid) + " on " + device.name);
  }
  const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  if (threads > device.max_threads_per_block) {
    return error(ErrorCode::kUnsupported, launch,
                 "a block of " + text(launch.block) + " threads; " + device.name + " allows at most " +
                     std::to_string(device.max_threads_per_block));
  }
  if (launch.shared_bytes < 0 || launch.shared_bytes > device.shared_memory_per_block) {
    return error(ErrorCode::kUnsupported, launch,
                 "needs " + std::to_string(launch.shared_bytes) + " bytes of shared memory; " + device.name +
                     " has " + std::to_string(device.shared_memory_per_block));
  }
  return {};
}

Status check_argument(const GpuProperties& device, const Launch& launch, const LaunchArgument& argument,
                      size_t buffers, const GpuSpan& workspace, int64_t scale) {
  if (argument.map && !device.has_tensor_maps)
    return error(ErrorCode::kUnsupported, launch,
                 "takes a tensor map, but " + device.name + " does not support them");
  if (argument.buffer >= static_cast<int64_t>(buffers)) {
    return error(ErrorCode::kInvalidArgument, launch,
                 "takes buffer " + std::to_string(argument.buffer) + " of " + std::to_string(buffers));
  }
  if (argument.buffer >= 0) return {};
  if (!workspace.memory)
    return error(ErrorCode::kInvalidArgument, launch, "needs a workspace, but none is given");
  if (argument.workspace_offset < 0 || argument.workspace_offset * scale >= workspace.bytes) {
    return error(ErrorCode::kInvalidArgument, launch,
                 "takes byte " + std::to_string(argument.workspace_offset) + " of a workspace of " +
                     std::to_string(workspace.bytes / scale));
  }
  return {};
}

}  // namespace

Status check_span(const GpuSpan& span, const std::string& what) {
  if (!span.memory) return Error{ErrorCode::kInvalidArgument, what, "has no memory"};
  const int64_t all = span.memory->bytes();
  if (span.offset >= 0 && span.bytes >= 0 && span.offset <= all && span.bytes <= all - span.offset) return {};
  return Error{ErrorCode::kInvalidArgument, what,
               std::to_string(span.bytes) + " bytes from byte " + std::to_string(span.offset) +
                   " on are not within its memory of " + std::to_string(all)};
}

Status check_launches(const GpuProperties& device, int64_t offset_alignment, std::span<const Launch> launches,
                      std::span<const GpuSpan> buffers, const GpuSpan& workspace, int64_t scale) {
  const auto check = [&](const GpuSpan& span, const std::string& what) -> Status {
    TS_RETURN_IF_ERROR(check_span(span, what));
    if (span.offset % offset_alignment == 0) return {};
    return Error{ErrorCode::kInvalidArgument, what,
                 "begins at byte " + std::to_string(span.offset) + " of its memory; " + device.name +
                     " requires multiples of " + std::to_string(offset_alignment)};
  };
  for (size_t i = 0; i < buffers.size(); ++i)
    TS_RETURN_IF_ERROR(check(buffers[i], "buffer " + std::to_string(i)));
  if (workspace.memory) TS_RETURN_IF_ERROR(check(workspace, "workspace"));
  for (const Launch& launch : launches) {
    TS_RETURN_IF_ERROR(check_extents(device, launch));
    for (const LaunchArgument& argument : launch.arguments)
      TS_RETURN_IF_ERROR(check_argument(device, launch, argument, buffers.size(), workspace, scale));
  }
  return {};
}

}  // namespace tensorsmith::runtime
