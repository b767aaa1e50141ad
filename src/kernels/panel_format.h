// How columns of a panel become vectors of floats.
#pragma once

#include <cstddef>
#include <utility>

#include "kernels/code_layout.h"

namespace tandem::kernels {

/// A panel's format: kColumns columns a step. visit() calls f(column within the step, value) for
/// the columns of the step that begins at `column`, in order, with vector `v` of the outputs.
template <class V, ScalarType kType>
struct DenseFormat {
  static constexpr size_t kColumns = 1;

  explicit DenseFormat(const PackedMatrix&) {}

  template <class F>
  [[gnu::always_inline]] void visit(const std::byte* panel, size_t column, size_t v, F f) const {
    const size_t at = column * PackedMatrix::kPanel + v * V::kLanes;
    f(size_t{0}, V::load(panel + at * size_of(kType), kType));
  }
};

template <class V>
struct DenseFormat<V, ScalarType::kBf16> {
  static constexpr size_t kColumns = 2;

  explicit DenseFormat(const PackedMatrix&) {}

  template <class F>
  [[gnu::always_inline]] void visit(const std::byte* panel, size_t column, size_t v, F f) const {
    const size_t at = column / 2 * PackedMatrix::kPanel + v * V::kLanes;
    const auto words = V::load_words(panel + at * 4);
    f(size_t{0}, V::low_bf16(words));
    f(size_t{1}, V::high_bf16(words));
  }
};

/// Quantized weights as numbers, code * scale + bias in one rounding: for checkpoints in float32,
/// whose products are in float32 too, and for codes that are no integers.
template <class V, int kBits, CodeKind kKind>
struct DequantizedFormat {
  static constexpr size_t kColumns = 32 / kBits;

  CodeLayout layout;

  explicit DequantizedFormat(const PackedMatrix& w) : layout(code_layout(w)) {}

  template <class F>
  [[gnu::always_inline]] void visit(const std::byte* panel, size_t column, size_t v, F f) const {
    const std::byte* group = panel + column / layout.group * layout.group_bytes();
    const size_t in_group = column % layout.group;
    const auto parameter = [&](size_t vector) __attribute__((always_inline)) {
      return load_parameter<V, kKind>(group + vector * V::kLanes * size_of(layout.type),
                                      layout.type);
    };
    const V scale = parameter(v);
    const V bias =
        kKind == CodeKind::kAffine ? parameter(PackedMatrix::kPanel / V::kLanes + v) : V::zero();
    const auto words =
        V::load_words(group + layout.header_bytes() + in_group / kColumns * 64 + v * V::kLanes * 4);
    visit_codes(std::make_integer_sequence<int, kColumns>(),
                [&](auto code) __attribute__((always_inline)) {
                  f(static_cast<size_t>(code()), V::fma(value<code()>(words), scale, bias));
                });
  }

 private:
  /// Of code kCode of a step.
  template <int kCode>
  [[gnu::always_inline]] static V value(typename V::Words words) {
    if constexpr (kKind == CodeKind::kE2m1)
      return V::all(0.5f) *
             V::template signed_byte<kCode % 4>(V::template doubled_e2m1<kCode / 4>(words));
    else if constexpr (kKind == CodeKind::kE4m3)
      return V::template e4m3<kCode>(words);
    else
      return V::template field<kBits, kCode % 4 * 8 + kCode / 4 * kBits>(words);
  }

  template <int... kCode, class F>
  [[gnu::always_inline]] static void visit_codes(std::integer_sequence<int, kCode...>, F f) {
    (f(std::integral_constant<int, kCode>()), ...);
  }
};

}  // namespace tandem::kernels
