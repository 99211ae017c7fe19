#include "engine/device/usable_threads.h"

#include <fmt/format.h>

#include "base/thread_pool.h"

namespace tensorsmith::engine {

int usable_threads(int wanted, LogSink& log) {
  if (wanted <= 1) return 1;
  const int usable = 1 + ThreadPool(wanted - 1).size();
  if (usable < wanted) {
    log.log(LogLevel::kWarning,
            fmt::format("only {} of {} threads could be started (see the limit of processes, ulimit -u)",
                        usable, wanted));
  }
  return usable;
}

}  // namespace tensorsmith::engine
