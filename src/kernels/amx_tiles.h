// Tile registers of AMX as functions. Only for files compiled with the instruction sets of
// CpuLevel::kAmx. Written in assembly, since g++ 12's own functions do not tell the compiler that
// they touch memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::kernels {

inline constexpr size_t kTileRows = 16;
inline constexpr size_t kTileLine = 64;  // bytes of a row at most
inline constexpr size_t kTileBytes = kTileRows * kTileLine;

/// Rows and bytes a row of the eight tiles.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t line_bytes[16] = {};
  uint8_t rows[16] = {};

  /// All tiles of full size.
  [[gnu::always_inline]] static TileShapes full() {
    TileShapes out;
    for (int tile = 0; tile < 8; ++tile) out.set(tile, kTileRows, kTileLine);
    return out;
  }
  [[gnu::always_inline]] void set(int tile, size_t count, size_t bytes) {
    rows[tile] = static_cast<uint8_t>(count);
    line_bytes[tile] = static_cast<uint16_t>(bytes);
  }
};

/// Tiles have these shapes, and zeros in them, while it lives.
class TileScope {
 public:
  explicit TileScope(const TileShapes& shapes) {
    asm volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
  }
  ~TileScope() { asm volatile("tilerelease" : : : "memory"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

template <int kTile>
[[gnu::always_inline]] inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

/// Rows lie `stride` bytes apart.
template <int kTile>
[[gnu::always_inline]] inline void load_tile(const std::byte* from, size_t stride = kTileLine) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(from), "r"(stride) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void store_tile(void* to, size_t stride = kTileLine) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(to), "r"(stride) : "memory");
}

/// kSum [m, n] += a [m, k] b [k, n] of pairs of bf16: a row of b holds k and k + 1 of each n.
template <int kSum, int kA, int kB>
[[gnu::always_inline]] inline void add_bf16_products() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}

/// The same in integers, of four bytes each: signed ones of a, unsigned or signed ones of b.
template <int kSum, int kA, int kB, bool kIsSigned>
[[gnu::always_inline]] inline void add_byte_products() {
  if constexpr (kIsSigned)
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  else
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}

}  // namespace tandem::kernels
