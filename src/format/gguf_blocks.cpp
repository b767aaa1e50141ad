#include "format/gguf_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "format/half.h"
#include "format/layouts/derived_checkpoint.h"

namespace tandem::format {
namespace {

constexpr size_t kGroup = kBlockGroup;
constexpr size_t kNibbles = kGroup / 2;
constexpr size_t kSuper = 256;  // numbers of the K types' blocks

/// float16 numbers; of MXFP4 a byte (E8M0) and nothing.
struct Scale {
  uint16_t scale = 0;
  uint16_t bias = 0;
};

/// A block type: its bytes and numbers, and what a group of 32 numbers becomes.
struct BlockType {
  GgmlType type;
  size_t bytes;
  size_t elements;
  int bits;
  Scale (*scale)(const std::byte* block, size_t group);
  void (*codes)(const std::byte* block, size_t group, uint8_t* codes);
};

uint8_t byte_at(const std::byte* from, size_t i) { return static_cast<uint8_t>(from[i]); }

uint16_t half_at(const std::byte* from, size_t i = 0) {
  uint16_t bits = 0;
  std::memcpy(&bits, from + 2 * i, sizeof(bits));
  return bits;
}

/// A scale of codes from 0 on that stand for numbers from -`middle` on.
Scale centred(float scale, float middle) {
  const uint16_t rounded = to_half(scale);
  return {rounded, to_half(from_half(rounded) * -middle)};
}

template <int Middle>
Scale centred_at(const std::byte* block, size_t) {
  return centred(from_half(half_at(block)), Middle);
}

Scale with_minimum(const std::byte* block, size_t) { return {half_at(block), half_at(block, 1)}; }

Scale exponent(const std::byte* block, size_t) { return {byte_at(block, 0), 0}; }

/// Nibbles behind `Head` bytes.
template <size_t Head>
void nibbles_of(const std::byte* block, size_t, uint8_t* codes) {
  for (size_t i = 0; i < kNibbles; ++i) {
    const uint8_t both = byte_at(block + Head, i);
    codes[i] = both & 15;
    codes[i + kNibbles] = both >> 4;
  }
}

/// And a fifth bit of each number in the word before them.
template <size_t Head>
void fives_of(const std::byte* block, size_t, uint8_t* codes) {
  nibbles_of<Head + 4>(block, 0, codes);
  for (size_t i = 0; i < kGroup; ++i) {
    const int fifth = byte_at(block + Head, i / 8) >> (i % 8) & 1;
    codes[i] = static_cast<uint8_t>(codes[i] | fifth << 4);
  }
}

void bytes_of_q8_0(const std::byte* block, size_t, uint8_t* codes) {
  for (size_t i = 0; i < kGroup; ++i) codes[i] = byte_at(block + 2, i) ^ 0x80;  // q → q + 128
}

/// What the codes of IQ4_NL and IQ4_XS stand for.
constexpr std::array<int8_t, 16> kUneven = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

void look_up_uneven(uint8_t* codes) {
  for (size_t i = 0; i < kGroup; ++i) codes[i] = static_cast<uint8_t>(kUneven[codes[i]] + 128);
}

void uneven_of_nl(const std::byte* block, size_t, uint8_t* codes) {
  nibbles_of<2>(block, 0, codes);
  look_up_uneven(codes);
}

/// float16, 16 bits of high parts and 4 bytes of low parts of the groups' scales, nibbles.
Scale scale_of_xs(const std::byte* block, size_t group) {
  const int low = byte_at(block + 4, group / 2) >> (4 * (group % 2)) & 15;
  const int high = half_at(block, 1) >> (2 * group) & 3;
  return centred(from_half(half_at(block)) * static_cast<float>((low | high << 4) - 32), 128);
}

void uneven_of_xs(const std::byte* block, size_t group, uint8_t* codes) {
  nibbles_of<8>(block + group * kNibbles, 0, codes);
  look_up_uneven(codes);
}

/// Scale and minimum of a group, 6 bits each in 12 bytes: those of the first four groups lie in the
/// low bits of 8 bytes, whose high bits belong to the others.
std::pair<int, int> six_bits(const std::byte* packed, size_t group) {
  if (group < 4) return {byte_at(packed, group) & 63, byte_at(packed, group + 4) & 63};
  const uint8_t low = byte_at(packed, group + 4);
  return {(low & 15) | byte_at(packed, group - 4) >> 6 << 4,
          low >> 4 | byte_at(packed, group) >> 6 << 4};
}

Scale scale_of_k(const std::byte* block, size_t group) {
  const auto [scale, minimum] = six_bits(block + 4, group);
  return {to_half(from_half(half_at(block)) * static_cast<float>(scale)),
          to_half(-from_half(half_at(block, 1)) * static_cast<float>(minimum))};
}

/// Two groups share 32 bytes: low halves are of the first.
template <size_t Head>
void nibbles_of_k(const std::byte* block, size_t group, uint8_t* codes) {
  const std::byte* const both = block + Head + group / 2 * kGroup;
  for (size_t i = 0; i < kGroup; ++i) codes[i] = byte_at(both, i) >> (4 * (group % 2)) & 15;
}

/// A bit of each group in 32 bytes before them.
void fives_of_k(const std::byte* block, size_t group, uint8_t* codes) {
  nibbles_of_k<48>(block, group, codes);
  for (size_t i = 0; i < kGroup; ++i) {
    const int fifth = byte_at(block + 16, i) >> group & 1;
    codes[i] = static_cast<uint8_t>(codes[i] | fifth << 4);
  }
}

/// Number i of a group. Halves of 128 numbers: nibbles in 64 bytes, of which the first two groups
/// have the low ones; two more bits in 32 bytes for all four; then a scale for each 16 numbers.
float number_of_6k(const std::byte* block, size_t group, size_t i) {
  const size_t half = group / 4, quarter = group % 4;
  const uint8_t nibbles = byte_at(block + half * 64, quarter % 2 * kGroup + i);
  const int low = quarter < 2 ? nibbles & 15 : nibbles >> 4;
  const int high = byte_at(block + 128 + half * 32, i) >> (2 * quarter) & 3;
  const auto scale = static_cast<int8_t>(byte_at(block + 192, 2 * group + i / 16));
  return from_half(half_at(block + 208)) * static_cast<float>(scale * ((low | high << 4) - 32));
}

/// One scale for 32 numbers, of which 127 steps reach the farthest.
Scale scale_of_6k(const std::byte* block, size_t group) {
  float most = 0;
  for (size_t i = 0; i < kGroup; ++i)
    most = std::max(most, std::fabs(number_of_6k(block, group, i)));
  return centred(most / 127, 128);
}

void codes_of_6k(const std::byte* block, size_t group, uint8_t* codes) {
  const float step = from_half(scale_of_6k(block, group).scale);
  for (size_t i = 0; i < kGroup; ++i) {
    const float exact = step == 0 ? 0 : number_of_6k(block, group, i) / step;
    codes[i] = static_cast<uint8_t>(
        static_cast<int>(std::clamp(std::nearbyint(exact), -128.0F, 127.0F)) + 128);
  }
}

constexpr std::array<BlockType, 11> kBlockTypes = {{
    {GgmlType::kQ4_0, 2 + kNibbles, kGroup, 4, centred_at<8>, nibbles_of<2>},
    {GgmlType::kQ4_1, 4 + kNibbles, kGroup, 4, with_minimum, nibbles_of<4>},
    {GgmlType::kQ5_0, 6 + kNibbles, kGroup, 5, centred_at<16>, fives_of<2>},
    {GgmlType::kQ5_1, 8 + kNibbles, kGroup, 5, with_minimum, fives_of<4>},
    {GgmlType::kQ8_0, 2 + kGroup, kGroup, 8, centred_at<128>, bytes_of_q8_0},
    {GgmlType::kQ4_K, 16 + kSuper / 2, kSuper, 4, scale_of_k, nibbles_of_k<16>},
    {GgmlType::kQ5_K, 48 + kSuper / 2, kSuper, 5, scale_of_k, fives_of_k},
    {GgmlType::kQ6_K, 210, kSuper, 8, scale_of_6k, codes_of_6k},
    {GgmlType::kIq4Nl, 2 + kNibbles, kGroup, 8, centred_at<128>, uneven_of_nl},
    {GgmlType::kIq4Xs, 8 + kSuper / 2, kSuper, 8, scale_of_xs, uneven_of_xs},
    {GgmlType::kMxfp4, 1 + kNibbles, kGroup, 4, exponent, nibbles_of<1>},
}};

/// Null for plain types.
const BlockType* find_block_type(GgmlType type) {
  const auto found = std::ranges::find(kBlockTypes, type, &BlockType::type);
  return found == kBlockTypes.end() ? nullptr : &*found;
}

/// Codes of `bits` each, LSB first.
void pack_codes(const uint8_t* codes, int bits, std::byte* to) {
  uint32_t pending = 0;
  int count = 0;
  for (size_t i = 0; i < kGroup; ++i) {
    pending |= uint32_t{codes[i]} << count;
    for (count += bits; count >= 8; count -= 8, pending >>= 8)
      *to++ = static_cast<std::byte>(pending & 255);
  }
}

/// `size` bytes for each group, written by write(block, group in it, to) on several threads.
template <class Write>
std::vector<std::byte> for_groups(const BlockType& type,
                                  std::span<const std::byte> blocks,
                                  size_t size,
                                  Write write) {
  const size_t count = blocks.size() / type.bytes, groups = type.elements / kGroup;
  std::vector<std::byte> out(count * groups * size);
  over_threads(count, count * type.elements, [&](size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at)
      for (size_t group = 0; group < groups; ++group)
        write(blocks.data() + at * type.bytes, group, out.data() + (at * groups + group) * size);
  });
  return out;
}

}  // namespace

std::optional<int> block_bits(GgmlType type) {
  const BlockType* block = find_block_type(type);
  return block == nullptr ? std::nullopt : std::optional(block->bits);
}

int64_t block_elements(GgmlType type) {
  const BlockType* block = find_block_type(type);
  return block == nullptr ? 1 : static_cast<int64_t>(block->elements);
}

uint64_t stored_bytes(GgmlType type, uint64_t elements) {
  if (const BlockType* block = find_block_type(type))
    return elements / block->elements * block->bytes;
  return elements * (type == GgmlType::kF32 ? 4 : 2);
}

std::vector<std::byte> block_codes(GgmlType type, std::span<const std::byte> blocks) {
  const BlockType& kind = *find_block_type(type);
  return for_groups(kind, blocks, kGroup * static_cast<size_t>(kind.bits) / 8,
                    [&](const std::byte* block, size_t group, std::byte* to) {
                      std::array<uint8_t, kGroup> codes;
                      kind.codes(block, group, codes.data());
                      pack_codes(codes.data(), kind.bits, to);
                    });
}

std::vector<std::byte> block_scales(GgmlType type, std::span<const std::byte> blocks) {
  const BlockType& kind = *find_block_type(type);
  const size_t size = type == GgmlType::kMxfp4 ? 1 : 2;
  return for_groups(kind, blocks, size, [&](const std::byte* block, size_t group, std::byte* to) {
    const Scale scale = kind.scale(block, group);
    std::memcpy(to, &scale.scale, size);
  });
}

std::vector<std::byte> block_biases(GgmlType type, std::span<const std::byte> blocks) {
  const BlockType& kind = *find_block_type(type);
  return for_groups(kind, blocks, 2, [&](const std::byte* block, size_t group, std::byte* to) {
    const Scale scale = kind.scale(block, group);
    std::memcpy(to, &scale.bias, 2);
  });
}

}  // namespace tandem::format
