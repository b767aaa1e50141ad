// How columns of a packed panel become vectors of floats.
#pragma once

#include <cstddef>
#include <utility>

#include "kernels/packed_matrix.h"

namespace tandem::kernels {

/// A panel format: kColumns columns in kBytes bytes a step. visit() calls f(column, value) for the
/// columns of one step in order, with eight outputs: those of half 0 or 1 of the panel. Quantized
/// values are codes times 2^(place of the field): see CodeLayout.
template <class V, int kBits>
struct QuantizedFormat {
  static constexpr bool kQuantized = true;
  static constexpr size_t kColumns = 32 / kBits;
  static constexpr size_t kBytes = 64;

  template <class F>
  [[gnu::always_inline]] static void visit(const std::byte* step, size_t half, F f) {
    const auto words = V::load_words(step + half * 32);
    visit_fields(words, f, std::make_integer_sequence<int, 32 / kBits>());
  }

 private:
  template <class F, int... kField>
  [[gnu::always_inline]] static void visit_fields(typename V::Words words,
                                                  F f,
                                                  std::integer_sequence<int, kField...>) {
    (f(size_t{kField}, V::template field<kBits, kField>(words)), ...);
  }
};

template <class V, ScalarType kType>
struct DenseFormat {
  static constexpr bool kQuantized = false;
  static constexpr size_t kColumns = 1;
  static constexpr size_t kBytes = PackedMatrix::kPanel * size_of(kType);

  template <class F>
  [[gnu::always_inline]] static void visit(const std::byte* step, size_t half, F f) {
    f(size_t{0}, V::load(step + half * (kBytes / 2), kType));
  }
};

template <class V>
struct DenseFormat<V, ScalarType::kBf16> {
  static constexpr bool kQuantized = false;
  static constexpr size_t kColumns = 2;
  static constexpr size_t kBytes = 64;

  template <class F>
  [[gnu::always_inline]] static void visit(const std::byte* step, size_t half, F f) {
    const auto words = V::load_words(step + half * 32);
    f(size_t{0}, V::low_bf16(words));
    f(size_t{1}, V::high_bf16(words));
  }
};

}  // namespace tandem::kernels
