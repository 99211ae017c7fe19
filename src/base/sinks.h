// Where rooms report to. They never print; tools decides what a terminal or a log file sees.
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
