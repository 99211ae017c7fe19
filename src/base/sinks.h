// Sinks for log messages. Libraries never print; tools decides what is shown on a terminal or
// written to a log file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorsmith {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void log(LogLevel level, std::string_view message) = 0;
};

class NullLogSink final : public LogSink {
 public:
  void log(LogLevel, std::string_view) override {}
};

}  // namespace tensorsmith
