// What every operation of a model needs to know: which kernels, which types, which peers.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/pool.h"
#include "tensor/collective.h"

namespace tandem::tensor {

enum class Path : uint8_t {
  kPlain,  // ordinary MLX operations, on any device: the oracle of the other
  kFast,   // our CPU kernels; float32 activations; a row's bits depend on nothing but the row
};

/// Copied into each block of a model.
struct Context {
  Path path = Path::kPlain;
  mx::Dtype dtype = mx::float32;                 // of activations; kFast: float32
  mx::Dtype kv_dtype = mx::float32;              // kFast: of keys and values, float32 or float16
  std::shared_ptr<kernels::WorkerPool> workers;  // kFast only; shared by all blocks
  std::shared_ptr<Collective> collective;        // null for a rank alone; shared by all blocks

  bool is_fast() const { return path == Path::kFast; }
  mx::Dtype pool_dtype() const { return is_fast() ? kv_dtype : dtype; }
};

/// x summed over the ranks; x itself for a rank alone.
inline array all_sum(const Context& context, const array& x) {
  return context.collective ? context.collective->all_sum(x) : x;
}

}  // namespace tandem::tensor
