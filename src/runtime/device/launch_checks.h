// What is wrong with launches before a driver sees them: drivers say little of it, or nothing.
#pragma once

#include <span>

#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

// Errors as of GpuSequence::add. workspace offsets count times `scale` (Gpu::workspace_scale).
Status check_launches(const GpuProperties& device, int64_t offset_alignment, std::span<const Launch> launches,
                      std::span<const GpuSpan> buffers, const GpuSpan& workspace, int64_t scale);

// The span lies within its memory; `what` names it in the error.
Status check_span(const GpuSpan& span, const std::string& what);

}  // namespace tensorsmith::runtime
