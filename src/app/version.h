// The version of this build, and of the MLX that it is made against: CMake knows both.
#pragma once

#include <string_view>

namespace tandem::app {

inline constexpr std::string_view kVersion = TANDEM_VERSION;
inline constexpr std::string_view kMlxVersion = TANDEM_MLX_VERSION;

}  // namespace tandem::app
