// Values between host memory and MLX arrays. On CUDA, MLX 0.32 moves a buffer to memory that the
// host reaches by a device-to-device copy, which CUDA may return from before it is done. These
// functions wait. A step's host code that may run beside a GPU touches memory of arrays through
// them only, but for scalars, which never move; code that runs where the CPU computes need not.
#pragma once

#include <mlx/mlx.h>

#include <cstring>
#include <vector>

namespace tandem::tensor {

/// Waits for the copies that MLX has begun on this thread for the host's sake. Costs nothing where
/// there is no CUDA. Throws std::runtime_error when the device has failed.
void settle_copies();

/// An array with a copy of these bytes.
mlx::core::array from_host(const void* data, mlx::core::Shape shape, mlx::core::Dtype dtype);

template <class T>
mlx::core::array from_host(const std::vector<T>& values, mlx::core::Shape shape) {
  return from_host(values.data(), std::move(shape), mlx::core::TypeToDtype<T>());
}

/// One axis.
template <class T>
mlx::core::array from_host(const std::vector<T>& values) {
  return from_host(values, {static_cast<int>(values.size())});
}

/// The elements of an evaluated array in its memory's order, valid while the array lives.
template <class T>
const T* on_host(const mlx::core::array& a) {
  const T* data = a.data<T>();
  settle_copies();
  return data;
}

/// Where the host writes an array's elements, in its memory's order. Requires memory: see
/// allocate() in tensor/cpu_op.h.
template <class T>
T* to_write(mlx::core::array& a) {
  T* data = a.data<T>();
  settle_copies();
  return data;
}

}  // namespace tandem::tensor
