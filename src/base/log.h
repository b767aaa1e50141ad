// Log lines to stderr. Prompts, tokens, keys and secrets never go in.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace tandem {

enum class LogLevel { kInfo, kWarn, kError };

/// Writes one line. Any thread.
void log(LogLevel level, std::string_view line);

/// Lines below the level are dropped. Default kInfo.
void set_log_level(LogLevel level);
LogLevel log_level();

/// Puts a name, such as "rank 1", before each line of this process.
void set_log_name(std::string_view name);

}  // namespace tandem

/// TANDEM_LOG(kInfo, "loaded {} layers", n)
#define TANDEM_LOG(level, ...)                                              \
  do {                                                                      \
    if (::tandem::LogLevel::level >= ::tandem::log_level())                 \
      ::tandem::log(::tandem::LogLevel::level, ::fmt::format(__VA_ARGS__)); \
  } while (false)
