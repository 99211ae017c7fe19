// Validates launches before the driver sees them, since drivers report little or nothing about
// invalid ones.
#pragma once

#include <span>

#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

// Errors are those of GpuSequence::add. Workspace offsets are multiplied by `scale`
// (Gpu::workspace_scale).
Status check_launches(const GpuProperties& device, int64_t offset_alignment, std::span<const Launch> launches,
                      std::span<const GpuSpan> buffers, const GpuSpan& workspace, int64_t scale);

// Checks that the span lies within its memory; `what` names it in the error.
Status check_span(const GpuSpan& span, const std::string& what);

}  // namespace tensorsmith::runtime
