// TANDEM_CHECK(condition, format, …): a broken invariant logs and aborts; the supervisor restarts
// the process.
#pragma once

#include <fmt/format.h>

#include <string>

namespace tandem {

/// Logs a broken invariant with its place and aborts.
[[noreturn]] void check_failed(const char* file,
                               int line,
                               const char* condition,
                               const std::string& message);

}  // namespace tandem

#define TANDEM_CHECK(condition, ...)                                                         \
  do {                                                                                       \
    if (!(condition)) [[unlikely]]                                                           \
      ::tandem::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
