// Where this user's caches lie. Header only: both executables read it.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace tandem::app {

/// XDG_CACHE_HOME, else .cache in HOME; empty when neither is set.
inline std::filesystem::path cache_folder() {
  const char* given = std::getenv("XDG_CACHE_HOME");
  if (given != nullptr && *given != '\0') return given;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".cache";
}

}  // namespace tandem::app
