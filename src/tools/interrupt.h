// SIGINT (Ctrl-C), SIGTERM and SIGHUP (a closed terminal) as a flag, so that a command can end cleanly.
#pragma once

#include <atomic>

namespace tensorsmith::tools {

// After the first call, a signal sets the flag; a second signal of any of these kinds ends the
// program.
const std::atomic<bool>& catch_interrupts();

}  // namespace tensorsmith::tools
