// Words of options that tandem passes on to tandem-rank: both executables take the same ones.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::app {

inline CLI::IsMember device_words() { return CLI::IsMember({"auto", "cpu", "gpu"}); }
inline CLI::IsMember path_words() { return CLI::IsMember({"auto", "fast", "plain"}); }
inline CLI::IsMember kv_type_words() { return CLI::IsMember({"auto", "f16", "f32"}); }

/// Every name of kernels/cpu_level.h, whatever this machine runs: resolve_device() looks at that.
inline CLI::IsMember cpu_level_words() {
  return CLI::IsMember({"auto", "portable", "neon", "neon_dot", "avx2", "avx512", "amx"});
}

}  // namespace tandem::app
