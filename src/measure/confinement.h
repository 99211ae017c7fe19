// What the worker process may still ask the system for once candidates run in it: memory, its threads' locks,
// clocks and processors, and the socket to its parent. No file system, no network, no other processes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tensorsmith::measure {

// Exit status of a worker whose candidate asked the system for something else; it wrote kForbiddenCall and
// the number of the system call to stderr.
inline constexpr int kExitForbiddenCall = 79;
inline constexpr std::string_view kForbiddenCall = "forbidden system call ";

// Confines this process for the rest of its life: a seccomp filter that ends it at any other system call, and
// Landlock, which by itself denies files, TCP connections and signals to others. start_threads makes the
// threads that candidates run on; afterwards the process starts none. socket: the only descriptor that
// messages go through. statm: /proc/self/statm, open for reading, or -1; descriptors above both may be
// closed.
//
// The answer is what the kernel refuses, for people; empty when everything is in place. A build with the
// address or thread sanitizer, which needs other system calls at any time, is not confined and says nothing.
std::string confine(int socket, int statm, const std::function<void()>& start_threads);

// What printed says of the forbidden call, with its name: "made a system call that candidates may not make:
// openat".
std::string describe_forbidden_call(std::string_view printed);

}  // namespace tensorsmith::measure
