#include "tools/interrupt.h"

#include <csignal>

namespace tensorsmith::tools {
namespace {

std::atomic<bool> interrupted{false};
void note(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
  return interrupted;
}

}  // namespace tensorsmith::tools
