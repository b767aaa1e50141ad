#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <string>

namespace tandem {
namespace {

std::atomic<LogLevel> lowest{LogLevel::kInfo};

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = spdlog::stderr_color_mt("tandem");
    made->set_level(spdlog::level::trace);
    made->set_pattern("%H:%M:%S.%e %^%L%$ %v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void log(LogLevel level, std::string_view line) { logger().log(to_spdlog(level), line); }
void set_log_level(LogLevel level) { lowest = level; }
LogLevel log_level() { return lowest; }

void set_log_name(std::string_view name) {
  logger().set_pattern("%H:%M:%S.%e %^%L%$ [" + std::string(name) + "] %v");
}

}  // namespace tandem
