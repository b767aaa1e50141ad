// The version of this build.
#pragma once

#include <string_view>

namespace tandem::app {

inline constexpr std::string_view kVersion = "0.1.0";
inline constexpr std::string_view kMlxVersion = "0.32.4";

}  // namespace tandem::app
