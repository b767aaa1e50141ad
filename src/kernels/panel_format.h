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
/// whose products are in float32 too.
template <class V, int kBits>
struct DequantizedFormat {
  static constexpr size_t kColumns = 32 / kBits;

  CodeLayout layout;

  explicit DequantizedFormat(const PackedMatrix& w) : layout(code_layout(w)) {}

  template <class F>
  [[gnu::always_inline]] void visit(const std::byte* panel, size_t column, size_t v, F f) const {
    const std::byte* group = panel + column / layout.group * layout.group_bytes();
    const size_t in_group = column % layout.group;
    const auto parameter = [&](size_t vector) __attribute__((always_inline)) {
      return V::load(group + vector * V::kLanes * size_of(layout.type), layout.type);
    };
    const V scale = parameter(v), bias = parameter(PackedMatrix::kPanel / V::kLanes + v);
    const auto words =
        V::load_words(group + layout.header_bytes() + in_group / kColumns * 64 + v * V::kLanes * 4);
    visit_codes(std::make_integer_sequence<int, kColumns>(),
                [&](auto code) __attribute__((always_inline)) {
                  constexpr int kShift = code() % 4 * 8 + code() / 4 * kBits;
                  f(static_cast<size_t>(code()),
                    V::fma(V::template field<kBits, kShift>(words), scale, bias));
                });
  }

 private:
  template <int... kCode, class F>
  [[gnu::always_inline]] static void visit_codes(std::integer_sequence<int, kCode...>, F f) {
    (f(std::integral_constant<int, kCode>()), ...);
  }
};

}  // namespace tandem::kernels
