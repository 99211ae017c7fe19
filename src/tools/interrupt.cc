#include "tools/interrupt.h"

#include <csignal>

namespace tensorsmith::tools {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note(int signal) {
  if (!interrupted.exchange(true)) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // nohup, and shells that start background programs, ignore the signal; it stays ignored.
    if (std::signal(signal, note) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  return interrupted;
}

}  // namespace tensorsmith::tools
