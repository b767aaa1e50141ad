// exp, tanh and loops with tails over vectors.
#pragma once

#include <cstddef>

namespace tandem::kernels {

/// exp(x), relative error below 3e-7 for x in [-87, 88]; 0 below, exp(88) above, NaN for NaN.
template <class V>
[[gnu::always_inline]] inline V vec_exp(V x) {
  const V low = V::all(-87.0f);
  const V clamped = V::max(low, V::min(V::all(88.0f), x));
  const V n = (clamped * V::all(1.44269504f)).rounded();
  // ln 2 in two parts, the first with trailing zeros so that n times it is exact.
  V r = V::fma(n, V::all(-0.693359375f), clamped);
  r = V::fma(n, V::all(2.12194440e-4f), r);
  V p = V::all(1.0f / 5040);
  p = V::fma(p, r, V::all(1.0f / 720));
  p = V::fma(p, r, V::all(1.0f / 120));
  p = V::fma(p, r, V::all(1.0f / 24));
  p = V::fma(p, r, V::all(1.0f / 6));
  p = V::fma(p, r, V::all(0.5f));
  p = V::fma(p, r, V::all(1.0f));
  p = V::fma(p, r, V::all(1.0f));
  return V::select_less(x, low, V::zero(), p * n.power_of_two());
}

/// 2^x, relative error below 3e-7 for x in [-126, 0]; 0 below -126.5 and for -infinity, NaN for
/// NaN, and exactly 1 for 0.
template <class V>
[[gnu::always_inline]] inline V vec_exp2(V x) {
  const V clamped = V::max(V::all(-127.0f), x);
  const V n = clamped.rounded();
  const V r = clamped - n;
  V p = V::all(1.5594677e-4f);
  p = V::fma(p, r, V::all(1.3406644e-3f));
  p = V::fma(p, r, V::all(9.6176930e-3f));
  p = V::fma(p, r, V::all(5.5503106e-2f));
  p = V::fma(p, r, V::all(0.24022653f));
  p = V::fma(p, r, V::all(0.69314721f));
  p = V::fma(p, r, V::all(1.0f));
  return p * n.power_of_two();
}

/// tanh(x), relative error below 1e-6.
template <class V>
[[gnu::always_inline]] inline V vec_tanh(V x) {
  const V one = V::all(1.0f);
  const V far = one - V::all(2.0f) / (vec_exp(V::min(V::all(40.0f), x + x)) + one);
  const V square = x * x;
  V p = V::all(-1382.0f / 155925);
  p = V::fma(p, square, V::all(62.0f / 2835));
  p = V::fma(p, square, V::all(-17.0f / 315));
  p = V::fma(p, square, V::all(2.0f / 15));
  p = V::fma(p, square, V::all(-1.0f / 3));
  const V near = V::fma(p * square, x, x);
  return V::select_less(x.absolute(), V::all(0.35f), near, far);
}

/// out[i] = f(a[i], b[i]) for i < n. The tail goes through the same vector operations, so an
/// element's bits do not depend on where it lies.
template <class V, class F>
[[gnu::always_inline]] inline void map2(const float* a, const float* b, float* out, size_t n, F f) {
  size_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) f(V::load(a + i), V::load(b + i)).store(out + i);
  if (i < n) f(V::load(a + i, n - i), V::load(b + i, n - i)).store(out + i, n - i);
}

}  // namespace tandem::kernels
