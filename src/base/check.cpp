#include "base/check.h"

#include <cstdlib>

#include "base/log.h"

namespace tandem {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  log(LogLevel::kError, fmt::format("{}:{}: check failed: {} {}", file, line, condition, message));
  std::abort();
}

}  // namespace tandem
