// The bits of quantized products, which all levels that fuse multiply-adds share, whatever the
// architecture.
#include <doctest/doctest.h>

#include "kernels/data_test.h"
#include "kernels/matmul.h"

using namespace tandem::kernels;

namespace {

/// Small whole numbers, alike everywhere: no library function takes part.
class Numbers {
 public:
  uint32_t next() { return (state_ = state_ * 1664525u + 1013904223u) >> 8; }
  /// In [-1, 1).
  float fraction() {
    return static_cast<float>(static_cast<int32_t>(next() % 65536) - 32768) / 32768.0f;
  }
  std::vector<float> fractions(size_t count, float factor) {
    std::vector<float> out(count);
    for (float& x : out) x = fraction() * factor;
    return out;
  }

 private:
  uint32_t state_ = 1;
};

/// FNV-1a over the bits of the values.
uint64_t hash_of(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    hash = (hash ^ bits) * 0x100000001b3u;
  }
  return hash;
}

/// The hash of a product with `bits`-bit codes: 37 outputs, 5 groups of 64 columns.
uint64_t product_hash(WorkerPool& pool, uint32_t bits, size_t rows) {
  Numbers numbers;
  constexpr size_t kOutputs = 37, kGroups = 5, kGroup = 64;
  std::vector<uint8_t> codes(kOutputs * kGroups * kGroup * bits / 8);
  for (uint8_t& code : codes) code = static_cast<uint8_t>(numbers.next());
  const auto scales = encode(numbers.fractions(kOutputs * kGroups, 0.1f), ScalarType::kBf16);
  const auto biases = encode(numbers.fractions(kOutputs * kGroups, 1.0f), ScalarType::kBf16);
  QuantizedView view{.codes = codes.data(), .scales = scales.data(), .biases = biases.data()};
  view.scale_type = ScalarType::kBf16;
  view.rows = kOutputs;
  view.cols = kGroups * kGroup;
  view.bits = bits;
  view.group = kGroup;
  const auto w = PackedMatrix::from_quantized(view);
  REQUIRE(w);
  const std::vector<float> x = numbers.fractions(rows * w->inputs(), 3.0f);
  std::vector<float> y(rows * kOutputs);
  matmul(pool, *w, {.x = x.data(), .rows = rows, .y = y.data()});
  return hash_of(y);
}

/// The same with codes of E2M1 in groups of 32, and powers of two as scales.
uint64_t mxfp4_hash(WorkerPool& pool, size_t rows) {
  Numbers numbers;
  constexpr size_t kOutputs = 37, kGroups = 5, kGroup = 32;
  std::vector<uint8_t> codes(kOutputs * kGroups * kGroup / 2), scales(kOutputs * kGroups);
  for (uint8_t& code : codes) code = static_cast<uint8_t>(numbers.next());
  for (uint8_t& scale : scales) scale = static_cast<uint8_t>(120 + numbers.next() % 8);
  const auto w = PackedMatrix::from_quantized({.codes = codes.data(),
                                               .scales = scales.data(),
                                               .scale_type = ScalarType::kE8m0,
                                               .rows = kOutputs,
                                               .cols = kGroups * kGroup,
                                               .group = kGroup,
                                               .kind = CodeKind::kE2m1});
  REQUIRE(w);
  const std::vector<float> x = numbers.fractions(rows * w->inputs(), 3.0f);
  std::vector<float> y(rows * kOutputs);
  matmul(pool, *w, {.x = x.data(), .rows = rows, .y = y.data()});
  return hash_of(y);
}

}  // namespace

TEST_CASE("levels: quantized products have the same bits on x86-64 and Arm") {
  for (const CpuLevel level : cpu_levels()) {
    if (level == CpuLevel::kPortable) continue;
    CAPTURE(name(level));
    WorkerPool pool(1, level);
    CHECK(product_hash(pool, 2, 1) == 6948754105047259726u);
    CHECK(product_hash(pool, 4, 3) == 14150845908333505420u);
    CHECK(product_hash(pool, 8, 20) == 16585203922844637050u);
    CHECK(mxfp4_hash(pool, 2) == 3706766085068450887u);
    CHECK(mxfp4_hash(pool, 20) == 2210961923689750310u);
  }
}
