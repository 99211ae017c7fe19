// Log sink that prints warnings and errors to standard error.
#pragma once

#include <cstdio>

#include "base/sinks.h"

namespace tensorsmith::bench {

class StderrSink final : public LogSink {
 public:
  void log(LogLevel level, std::string_view message) override {
    if (level >= LogLevel::kWarning)
      std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
  }
};

}  // namespace tensorsmith::bench
