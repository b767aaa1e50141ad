// Counter-based random numbers: a draw is a pure function of what it is for, never of shared state.
#pragma once

#include <array>
#include <cstdint>

namespace tandem::sample {

/// Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// What a random number decides: different purposes of one position are independent.
enum class Purpose : uint32_t { kToken = 0, kXtc = 1 };

/// What a random number belongs to.
struct DrawKey {
  uint64_t seed = 0;
  uint32_t choice = 0;
  uint32_t position = 0;  // of the token to be drawn, counted from the prompt's start
};

/// Uniform in [0, 1) with 53 random bits.
double uniform(const DrawKey& key, Purpose purpose);

}  // namespace tandem::sample
