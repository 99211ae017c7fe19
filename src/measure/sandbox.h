// Limits of the worker process. All of it concerns the calling process only.
#pragma once

#include <cstdint>

namespace tensorsmith::measure {

// Exit status of a worker whose candidate crashed with its memory limit used up.
inline constexpr int kExitMemoryLimit = 78;

// No core files; the first victim when the machine runs out of memory; fatal signals are told from exhausted
// memory by the exit status kExitMemoryLimit.
void enter_sandbox();

// From here on the process may map at most this much more memory than it has now. Without effect in a build
// with the address or thread sanitizer, whose shadow memory needs more than any limit.
void limit_memory(int64_t more_bytes);

// Whether nearly all of the limit is used (async-signal-safe).
bool memory_is_exhausted();

}  // namespace tensorsmith::measure
