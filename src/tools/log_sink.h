// Writes log lines of the libraries to stderr through spdlog.
#pragma once

#include <memory>
#include <string_view>

#include "base/sinks.h"

namespace spdlog {
class logger;
}

namespace tensorsmith::tools {

class StderrLogSink final : public LogSink {
 public:
  explicit StderrLogSink(LogLevel threshold);
  ~StderrLogSink() override;
  void log(LogLevel level, std::string_view message) override;

 private:
  std::unique_ptr<spdlog::logger> logger_;
};

}  // namespace tensorsmith::tools
