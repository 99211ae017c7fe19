// Restricts the system calls of a worker process before candidates run in it. It keeps memory, its
// threads' locks, clocks and processors, and the socket to its parent; it loses the file system,
// the network and other processes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tensorsmith::measure {

// Exit status of a worker whose candidate made a forbidden system call. The worker writes
// kForbiddenCall and the number of the call to stderr.
inline constexpr int kExitForbiddenCall = 79;
inline constexpr std::string_view kForbiddenCall = "forbidden system call ";

// Confines this process permanently: a seccomp filter ends it at any other system call, and
// Landlock independently denies files, TCP connections and signals to other processes.
// `start_threads` starts the threads that candidates run on; the process cannot start any
// afterwards. `socket` is the only descriptor for messages. The process may go on reading the files
// `readable`; descriptors above all of these may be closed.
//
// Returns a display text with the restrictions that the kernel refuses; empty if all are in place.
// A build with the address or thread sanitizer, which needs other system calls at any time, is not
// confined and returns an empty text.
std::string confine(int socket, std::span<const int> readable, const std::function<void()>& start_threads);

// Describes the forbidden call that a worker printed, by name: "made a system call that candidates
// may not make: openat".
std::string describe_forbidden_call(std::string_view printed);

}  // namespace tensorsmith::measure
