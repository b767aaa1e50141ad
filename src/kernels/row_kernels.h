// Norms, rotary embedding and activations, for any vector type.
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/kernel_table.h"
#include "kernels/vec_math.h"

namespace tandem::kernels {

/// The sum of squares, in an order that depends on n alone.
template <class V>
[[gnu::always_inline]] inline float sum_of_squares(const float* x, size_t n) {
  V sums[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
  size_t i = 0;
  for (; i + 4 * V::kLanes <= n; i += 4 * V::kLanes) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const V value = V::load(x + i + j * V::kLanes);
      sums[j] = V::fma(value, value, sums[j]);
    }
  }
  for (; i < n; i += V::kLanes) {
    const V value = n - i < V::kLanes ? V::load(x + i, n - i) : V::load(x + i);
    sums[0] = V::fma(value, value, sums[0]);
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])).sum();
}

template <class V>
void rms_norm_range(const RmsNormArgs& args, size_t begin, size_t end) {
  const size_t n = args.width;
  const V offset = V::all(args.weight_offset);
  for (size_t r = begin; r < end; ++r) {
    const float* x = args.x + r * args.x_stride;
    const float mean = args.squares == nullptr ? sum_of_squares<V>(x, n) / static_cast<float>(n)
                                               : args.squares[r * args.squares_stride] /
                                                     static_cast<float>(args.squares_width);
    const V factor = V::all(1.0f / std::sqrt(mean + args.eps));
    float* out = args.out + r * args.out_stride;
    if (args.weight == nullptr) {
      map2<V>(x, x, out, n, [&](V value, V) { return value * factor; });
    } else {
      map2<V>(x, args.weight, out, n,
              [&](V value, V weight) { return value * factor * (weight + offset); });
    }
  }
}

template <class V>
void sum_squares_range(const SquareSumArgs& args, size_t begin, size_t end) {
  for (size_t r = begin; r < end; ++r)
    args.out[r * args.out_stride] = sum_of_squares<V>(args.x + r * args.x_stride, args.width);
}

/// Rotates pairs [p, p + n) of one head by the angles of its token.
template <class V>
[[gnu::always_inline]] inline void rotate_pairs(
    const RopeArgs& args, float* x, const float* cosine, const float* sine, size_t n) {
  const bool full = n == V::kLanes;
  const auto read = [&](const float* p) { return full ? V::load(p) : V::load(p, n); };
  const auto write = [&](float* p, V value) { full ? value.store(p) : value.store(p, n); };
  const V c = read(cosine);
  const V s = read(sine);
  const V a = read(x) * V::all(args.scale);
  const V b = read(x + args.pairs) * V::all(args.scale);
  write(x, a * c - b * s);
  write(x + args.pairs, a * s + b * c);
}

template <class V>
[[gnu::always_inline]] inline void rotate_halves(const RopeArgs& args,
                                                 float* x,
                                                 const float* cosine,
                                                 const float* sine) {
  size_t p = 0;
  for (; p + V::kLanes <= args.pairs; p += V::kLanes) {
    rotate_pairs<V>(args, x + p, cosine + p, sine + p, V::kLanes);
  }
  if (p < args.pairs) rotate_pairs<V>(args, x + p, cosine + p, sine + p, args.pairs - p);
}

inline void rotate_neighbours(const RopeArgs& args,
                              float* x,
                              const float* cosine,
                              const float* sine) {
  for (size_t p = 0; p < args.pairs; ++p) {
    const float a = x[2 * p] * args.scale;
    const float b = x[2 * p + 1] * args.scale;
    x[2 * p] = a * cosine[p] - b * sine[p];
    x[2 * p + 1] = a * sine[p] + b * cosine[p];
  }
}

template <class V>
void rope_range(const RopeArgs& args, size_t begin, size_t end) {
  for (size_t t = begin; t < end; ++t) {
    const float* cosine = args.cosine + t * args.pairs;
    const float* sine = args.sine + t * args.pairs;
    for (size_t h = 0; h < args.heads; ++h) {
      float* x = args.x + t * args.token_stride + h * args.head_dim;
      if (args.interleaved) {
        rotate_neighbours(args, x, cosine, sine);
      } else {
        rotate_halves<V>(args, x, cosine, sine);
      }
    }
  }
}

template <class V>
[[gnu::always_inline]] inline V silu(V x) {
  return x / (V::all(1.0f) + vec_exp(V::zero() - x));
}

template <class V>
[[gnu::always_inline]] inline V gelu_tanh(V x) {
  const V cubic = V::fma(x * x * x, V::all(0.044715f), x);
  const V half = V::all(0.5f) * x;
  return V::fma(half, vec_tanh(V::all(0.7978845608f) * cubic), half);
}

template <class V>
[[gnu::always_inline]] inline V clamped_swiglu(V gate, V up) {
  const V limit = V::all(7.0f), one = V::all(1.0f);
  const V g = V::min(limit, gate);
  const V u = V::max(V::zero() - limit, V::min(limit, up));
  return g / (one + vec_exp(V::all(-1.702f) * g)) * (u + one);
}

template <class V>
void gated_range(const GatedArgs& args, Gate gate, size_t begin, size_t end) {
  for (size_t r = begin; r < end; ++r) {
    const float* g = args.gate + r * args.gate_stride;
    const float* u = args.up + r * args.up_stride;
    float* out = args.out + r * args.out_stride;
    if (gate == Gate::kSilu) {
      map2<V>(g, u, out, args.width, [](V a, V b) { return silu(a) * b; });
    } else if (gate == Gate::kSigmoid) {
      map2<V>(g, u, out, args.width,
              [](V a, V b) { return b / (V::all(1.0f) + vec_exp(V::zero() - a)); });
    } else if (gate == Gate::kClamped) {
      map2<V>(g, u, out, args.width, [](V a, V b) { return clamped_swiglu(a, b); });
    } else if (gate == Gate::kRelu) {
      map2<V>(g, u, out, args.width, [](V a, V b) { return V::max(V::zero(), a) * b; });
    } else {
      map2<V>(g, u, out, args.width, [](V a, V b) { return gelu_tanh(a) * b; });
    }
  }
}

template <class V>
void combine_range(const CombineArgs& args, size_t begin, size_t end) {
  for (size_t r = begin; r < end; ++r) {
    const uint32_t* places = args.places + r * args.top_k;
    const float* weights = args.weights + r * args.top_k;
    float* out = args.out + r * args.width;
    const auto columns = [&](size_t at, auto load, auto store) __attribute__((always_inline)) {
      V sum = V::zero();
      for (size_t k = 0; k < args.top_k; ++k) {
        sum = V::fma(V::all(weights[k]), load(args.y + places[k] * args.width + at), sum);
      }
      store(out + at, sum);
    };
    size_t i = 0;
    for (; i + V::kLanes <= args.width; i += V::kLanes) {
      columns(i, [](const float* p) { return V::load(p); }, [](float* p, V sum) { sum.store(p); });
    }
    if (const size_t left = args.width - i; left > 0) {
      columns(
          i, [&](const float* p) { return V::load(p, left); },
          [&](float* p, V sum) { sum.store(p, left); });
    }
  }
}

template <class V>
void softcap_range(float* x, float cap, size_t begin, size_t end) {
  const V limit = V::all(cap);
  map2<V>(x + begin, x + begin, x + begin, end - begin,
          [&](V a, V) { return limit * vec_tanh(a / limit); });
}

}  // namespace tandem::kernels
