// Weights as integers, and how their publishers write them: each packer goes code by code after the
// definition of its format, and shares nothing with the readers.
#pragma once

#include <cmath>
#include <random>

#include "format/testdata/memory_checkpoint.h"

namespace tandem::format {

/// A matrix whose elements are (code - zero) * scale. Scales have so few bits that all products are
/// exact in float16.
struct IntegerWeights {
  size_t outputs = 0, inputs = 0, group = 0, bits = 4;
  std::vector<uint32_t> codes = {};  // [outputs, inputs]
  std::vector<uint32_t> zeros = {};  // [outputs, groups]
  std::vector<float> scales = {};    // [outputs, groups]

  size_t groups() const { return inputs / group; }
  uint32_t code(size_t o, size_t i) const { return codes[o * inputs + i]; }
  uint32_t zero(size_t o, size_t g) const { return zeros[o * groups() + g]; }
  float scale(size_t o, size_t g) const { return scales[o * groups() + g]; }
  float value(size_t o, size_t i) const {
    const size_t g = i / group;
    return (static_cast<float>(code(o, i)) - static_cast<float>(zero(o, g))) * scale(o, g);
  }
};

/// Random codes around zeros; `is_symmetric`: every zero is the middle of the codes. Of about the
/// size 1 / sqrt(inputs).
inline IntegerWeights random_integers(IntegerWeights w, bool is_symmetric, uint64_t seed) {
  std::mt19937_64 random(seed);
  const uint32_t codes = 1U << w.bits, middle = codes / 2;
  for (size_t i = 0; i < w.outputs * w.inputs; ++i)
    w.codes.push_back(static_cast<uint32_t>(random() % codes));
  const int exponent = -static_cast<int>(w.bits) - std::ilogb(static_cast<float>(w.inputs)) / 2 - 1;
  for (size_t i = 0; i < w.outputs * w.groups(); ++i) {
    const auto shift = static_cast<uint32_t>(random() % (middle / 2 + 1));
    w.zeros.push_back(is_symmetric ? middle : middle - shift + 1);
    w.scales.push_back(std::ldexp(static_cast<float>(4 + random() % 4), exponent));
  }
  return w;
}

/// float16 of a number with at most 11 bits.
inline uint16_t half_of(float value) {
  if (value == 0) return 0;
  const int exponent = std::ilogb(value);
  const auto fraction = static_cast<int>(std::ldexp(std::fabs(value), 10 - exponent)) - 1024;
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) + ((exponent + 15) << 10) + fraction);
}

/// Puts a code of `bits` at a bit of a row of words.
inline void put_code(uint32_t* words, size_t bit, size_t bits, uint32_t code) {
  for (size_t k = 0; k < bits; ++k)
    if ((code >> k & 1U) != 0) words[(bit + k) / 32] |= 1U << ((bit + k) % 32);
}

/// Scales as [groups, outputs] in float16.
inline void put_turned_scales(MemoryCheckpoint& to,
                              const std::string& name,
                              const IntegerWeights& w) {
  std::vector<uint16_t> scales;
  for (size_t g = 0; g < w.groups(); ++g)
    for (size_t o = 0; o < w.outputs; ++o) scales.push_back(half_of(w.scale(o, g)));
  to.put(name + ".scales", Dtype::kF16,
         {static_cast<int64_t>(w.groups()), static_cast<int64_t>(w.outputs)}, scales);
}

/// AutoAWQ, version gemm.
inline void pack_awq(MemoryCheckpoint& to, const std::string& name, const IntegerWeights& w) {
  constexpr size_t kOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};  // of the outputs in a word
  const size_t width = w.outputs / 8;
  std::vector<uint32_t> words(w.inputs * width), zeros(w.groups() * width);
  for (size_t c = 0; c < width; ++c)
    for (size_t place = 0; place < 8; ++place) {
      const size_t o = 8 * c + kOrder[place];
      for (size_t i = 0; i < w.inputs; ++i) words[i * width + c] |= w.code(o, i) << (4 * place);
      for (size_t g = 0; g < w.groups(); ++g) zeros[g * width + c] |= w.zero(o, g) << (4 * place);
    }
  const auto columns = static_cast<int64_t>(width);
  to.put(name + ".qweight", Dtype::kI32, {static_cast<int64_t>(w.inputs), columns}, words);
  to.put(name + ".qzeros", Dtype::kI32, {static_cast<int64_t>(w.groups()), columns}, zeros);
  put_turned_scales(to, name, w);
}

/// AutoGPTQ with `zero_offset` 1 (zeros are kept less one), GPTQModel's v2 with 0.
inline void pack_gptq(MemoryCheckpoint& to,
                      const std::string& name,
                      const IntegerWeights& w,
                      uint32_t zero_offset = 1) {
  const size_t height = w.inputs * w.bits / 32, width = w.outputs * w.bits / 32;
  std::vector<uint32_t> words(height * w.outputs), zeros(w.groups() * width);
  for (size_t o = 0; o < w.outputs; ++o) {
    std::vector<uint32_t> column(height);
    for (size_t i = 0; i < w.inputs; ++i) put_code(column.data(), i * w.bits, w.bits, w.code(o, i));
    for (size_t r = 0; r < height; ++r) words[r * w.outputs + o] = column[r];
    for (size_t g = 0; g < w.groups(); ++g)
      put_code(&zeros[g * width], o * w.bits, w.bits, w.zero(o, g) - zero_offset);
  }
  std::vector<int32_t> index;
  for (size_t i = 0; i < w.inputs; ++i) index.push_back(static_cast<int32_t>(i / w.group));
  to.put(name + ".qweight", Dtype::kI32,
         {static_cast<int64_t>(height), static_cast<int64_t>(w.outputs)}, words);
  to.put(name + ".qzeros", Dtype::kI32,
         {static_cast<int64_t>(w.groups()), static_cast<int64_t>(width)}, zeros);
  to.put(name + ".g_idx", Dtype::kI32, {static_cast<int64_t>(w.inputs)}, index);
  put_turned_scales(to, name, w);
}

/// compressed-tensors, pack-quantized; zeros only with `has_zeros`.
inline void pack_compressed(MemoryCheckpoint& to,
                            const std::string& name,
                            const IntegerWeights& w,
                            bool has_zeros) {
  const size_t per_word = 32 / w.bits, width = w.inputs / per_word;
  const size_t zero_rows = (w.outputs + per_word - 1) / per_word;
  std::vector<uint32_t> words(w.outputs * width), zeros(zero_rows * w.groups());
  std::vector<uint16_t> scales;
  for (size_t o = 0; o < w.outputs; ++o) {
    for (size_t i = 0; i < w.inputs; ++i)
      words[o * width + i / per_word] |= w.code(o, i) << (w.bits * (i % per_word));
    for (size_t g = 0; g < w.groups(); ++g) {
      zeros[o / per_word * w.groups() + g] |= w.zero(o, g) << (w.bits * (o % per_word));
      scales.push_back(half_of(w.scale(o, g)));
    }
  }
  const auto rows = static_cast<int64_t>(w.outputs), groups = static_cast<int64_t>(w.groups());
  to.put(name + ".weight_packed", Dtype::kI32, {rows, static_cast<int64_t>(width)}, words);
  to.put(name + ".weight_scale", Dtype::kF16, {rows, groups}, scales);
  to.put(name + ".weight_shape", Dtype::kI64, {2},
         std::vector<int64_t>{rows, static_cast<int64_t>(w.inputs)});
  if (has_zeros)
    to.put(name + ".weight_zero_point", Dtype::kI32, {static_cast<int64_t>(zero_rows), groups},
           zeros);
}

/// mlx-lm's own layout, in groups of `group`, with numbers in float16.
inline void pack_affine(MemoryCheckpoint& to,
                        const std::string& name,
                        const IntegerWeights& w,
                        size_t group) {
  const size_t width = w.inputs * w.bits / 32;
  std::vector<uint32_t> words(w.outputs * width);
  std::vector<uint16_t> scales, biases;
  for (size_t o = 0; o < w.outputs; ++o) {
    for (size_t i = 0; i < w.inputs; ++i)
      put_code(&words[o * width], i * w.bits, w.bits, w.code(o, i));
    for (size_t i = 0; i < w.inputs; i += group) {
      const float scale = w.scale(o, i / w.group);
      scales.push_back(half_of(scale));
      biases.push_back(half_of(-scale * static_cast<float>(w.zero(o, i / w.group))));
    }
  }
  const auto rows = static_cast<int64_t>(w.outputs);
  const auto groups = static_cast<int64_t>(w.inputs / group);
  to.put(name + ".weight", Dtype::kU32, {rows, static_cast<int64_t>(width)}, words);
  to.put(name + ".scales", Dtype::kF16, {rows, groups}, scales);
  to.put(name + ".biases", Dtype::kF16, {rows, groups}, biases);
}

}  // namespace tandem::format
