// Limits of the worker process. All functions apply to the calling process only.
#pragma once

#include <cstdint>

namespace tensorsmith::measure {

// Exit status of a worker whose candidate crashed when its memory limit was used up.
inline constexpr int kExitMemoryLimit = 78;

// Sanitizers need mappings and system calls that a sandbox does not allow.
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

// Enters the sandbox: no core files, hardly any file output, no environment; the process is the
// first to be killed if the machine runs out of memory; the exit status kExitMemoryLimit
// distinguishes exhausted memory from other fatal signals; signals from the terminal are ignored,
// since the parent handles them. Returns /proc/self/statm, open for reading, or -1. for_driver:
// keeps opening files and reading the environment possible, as the driver of a device needs it.
int enter_sandbox(bool for_driver = false);

// Limits the memory that the process may map in addition to its present mappings. Has no effect in
// a build with the address or thread sanitizer, whose shadow memory exceeds any limit.
void limit_memory(int64_t more_bytes);

// As above for writable memory only. The hundreds of gigabytes of address space that a device's
// driver reserves do not count.
void limit_written_memory(int64_t more_bytes);

// Whether nearly all of the limit is used. Async-signal-safe.
bool memory_is_exhausted();

}  // namespace tensorsmith::measure
