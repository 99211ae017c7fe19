// Log lines of the rooms, on stderr through spdlog.
#pragma once

#include <memory>
#include <set>
#include <string>
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

// Passes every line on once.
class OnceLogSink final : public LogSink {
 public:
  explicit OnceLogSink(LogSink& sink) : sink_(sink) {}
  void log(LogLevel level, std::string_view message) override {
    if (said_.emplace(message).second) sink_.log(level, message);
  }

 private:
  LogSink& sink_;
  std::set<std::string> said_;
};

}  // namespace tensorsmith::tools
