// Limits of the worker process. All of it concerns the calling process only.
#pragma once

#include <cstdint>

namespace tensorsmith::measure {

// Exit status of a worker whose candidate crashed with its memory limit used up.
inline constexpr int kExitMemoryLimit = 78;

// Sanitizers map and call what no sandbox allows.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

// No core files, hardly any file output, no environment; the first victim when the machine runs out of
// memory; fatal signals are told from exhausted memory by the exit status kExitMemoryLimit; what a terminal
// sends to all of its programs is for the parent to decide. The answer: /proc/self/statm, open for reading,
// or -1. for_driver: the process goes on to open files and to read its environment, as a device's driver does; it
// keeps both.
int enter_sandbox(bool for_driver = false);

// From here on the process may map at most this much more memory than it has now. Without effect in a build
// with the address or thread sanitizer, whose shadow memory needs more than any limit.
void limit_memory(int64_t more_bytes);

// The same of memory that it can write. What a device's driver reserves of addresses, hundreds of gigabytes, is no
// memory and does not count.
void limit_written_memory(int64_t more_bytes);

// Whether nearly all of the limit is used (async-signal-safe).
bool memory_is_exhausted();

}  // namespace tensorsmith::measure
