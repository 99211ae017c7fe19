// SIGINT (Ctrl-C), SIGTERM and SIGHUP (a closed terminal) as a flag, so that a command can end cleanly.
#pragma once

#include <atomic>

namespace tensorsmith::tools {

// From the first call on a signal sets the flag; a second one, of any of them, ends the program.
const std::atomic<bool>& catch_interrupts();

}  // namespace tensorsmith::tools
