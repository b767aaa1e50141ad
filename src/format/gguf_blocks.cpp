#include "format/gguf_blocks.h"

#include <cstring>

#include "format/half.h"

namespace tandem::format {
namespace {

constexpr size_t kNibbles = kBlockGroup / 2;

/// Bytes of a block, and where its codes begin.
struct Layout {
  size_t bytes = 0;
  size_t codes = 0;
};

Layout layout(GgmlType type) {
  switch (type) {
    case GgmlType::kQ4_0:
      return {2 + kNibbles, 2};
    case GgmlType::kQ4_1:
      return {4 + kNibbles, 4};
    case GgmlType::kQ8_0:
      return {2 + kBlockGroup, 2};
    case GgmlType::kMxfp4:
      return {1 + kNibbles, 1};
    default:
      return {};
  }
}

/// ggml keeps element i in the low half of byte i and element i + 16 in its high half; MLX keeps
/// neighbours together.
void write_nibbles(const std::byte* from, std::byte* to) {
  const auto element = [&](size_t i) {
    return i < kNibbles ? from[i] & std::byte{15} : from[i - kNibbles] >> 4;
  };
  for (size_t i = 0; i < kNibbles; ++i) to[i] = element(2 * i) | (element(2 * i + 1) << 4);
}

void write_bytes(const std::byte* from, std::byte* to) {
  for (size_t i = 0; i < kBlockGroup; ++i)
    to[i] = from[i] ^ std::byte{0x80};  // int8 q → uint8 q + 128
}

uint16_t bias(GgmlType type, const std::byte* block) {
  uint16_t stored = 0;
  std::memcpy(&stored, block + (type == GgmlType::kQ4_1 ? 2 : 0), 2);
  if (type == GgmlType::kQ4_1) return stored;
  return to_half(from_half(stored) * (type == GgmlType::kQ4_0 ? -8.0F : -128.0F));
}

}  // namespace

std::optional<int> block_bits(GgmlType type) {
  if (type == GgmlType::kQ4_0 || type == GgmlType::kQ4_1 || type == GgmlType::kMxfp4) return 4;
  if (type == GgmlType::kQ8_0) return 8;
  return std::nullopt;
}

uint64_t stored_bytes(GgmlType type, uint64_t elements) {
  switch (type) {
    case GgmlType::kF32:
      return elements * 4;
    case GgmlType::kF16:
    case GgmlType::kBF16:
      return elements * 2;
    default:
      return elements / kBlockGroup * layout(type).bytes;
  }
}

std::vector<std::byte> block_codes(GgmlType type, std::span<const std::byte> blocks) {
  const Layout shape = layout(type);
  const size_t count = blocks.size() / shape.bytes;
  const size_t code_bytes = shape.bytes - shape.codes;
  std::vector<std::byte> codes(count * code_bytes);
  for (size_t i = 0; i < count; ++i) {
    const std::byte* from = blocks.data() + i * shape.bytes + shape.codes;
    std::byte* to = codes.data() + i * code_bytes;
    if (type == GgmlType::kQ8_0) {
      write_bytes(from, to);
    } else {
      write_nibbles(from, to);
    }
  }
  return codes;
}

std::vector<std::byte> block_scales(GgmlType type, std::span<const std::byte> blocks) {
  const Layout shape = layout(type);
  const size_t count = blocks.size() / shape.bytes;
  const size_t size = type == GgmlType::kMxfp4 ? 1 : 2;
  std::vector<std::byte> scales(count * size);
  for (size_t i = 0; i < count; ++i)
    std::memcpy(scales.data() + i * size, blocks.data() + i * shape.bytes, size);
  return scales;
}

std::vector<std::byte> block_biases(GgmlType type, std::span<const std::byte> blocks) {
  const Layout shape = layout(type);
  const size_t count = blocks.size() / shape.bytes;
  std::vector<std::byte> biases(count * 2);
  for (size_t i = 0; i < count; ++i) {
    const uint16_t value = bias(type, blocks.data() + i * shape.bytes);
    std::memcpy(biases.data() + i * 2, &value, 2);
  }
  return biases;
}

}  // namespace tandem::format
