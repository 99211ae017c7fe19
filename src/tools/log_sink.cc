#include "tools/log_sink.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include "tools/console.h"

namespace tensorsmith::tools {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

StderrLogSink::StderrLogSink(LogLevel threshold)
    : logger_(std::make_unique<spdlog::logger>("tensorsmith",
                                               std::make_shared<spdlog::sinks::stderr_color_sink_mt>())) {
  logger_->set_pattern("%n: %^%l%$: %v");
  logger_->set_level(to_spdlog(threshold));
}

StderrLogSink::~StderrLogSink() = default;

void StderrLogSink::log(LogLevel level, std::string_view message) {
  logger_->log(to_spdlog(level), "{}", printable(message));
}

}  // namespace tensorsmith::tools
