#include "format/layouts/turn.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace tandem::format {
namespace {

/// Elements of both sides that are turned together: lines of the cache are read and written whole.
constexpr size_t kSide = 16;

template <class T>
void turn_all(const std::byte* from, const Columns& m, std::byte* to) {
  for (size_t column = 0; column < m.count; column += kSide)
    for (size_t row = 0; row < m.height; row += kSide) {
      const size_t last = std::min(row + kSide, m.height);
      for (size_t c = column; c < std::min(column + kSide, m.count); ++c)
        for (size_t r = row; r < last; ++r)
          std::memcpy(to + (c * m.height + r) * sizeof(T),
                      from + (r * m.width + m.first + c) * sizeof(T), sizeof(T));
    }
}

}  // namespace

void turn(const std::byte* from, const Columns& columns, size_t size, std::byte* to) {
  switch (size) {
    case 1:
      return turn_all<uint8_t>(from, columns, to);
    case 2:
      return turn_all<uint16_t>(from, columns, to);
    case 4:
      return turn_all<uint32_t>(from, columns, to);
    default:
      TANDEM_CHECK(size == 8, "elements of {} bytes", size);
      return turn_all<uint64_t>(from, columns, to);
  }
}

}  // namespace tandem::format
