#include "tensor/host.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>

namespace tandem::tensor {
namespace {

namespace mx = mlx::core;

/// cuStreamSynchronize of the CUDA driver API.
using Synchronize = int (*)(void* stream);

Synchronize find_driver() {
  if (!mx::is_available(mx::Device(mx::Device::gpu))) return nullptr;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);  // absent where the GPU is Apple's
  if (driver == nullptr) return nullptr;
  return reinterpret_cast<Synchronize>(dlsym(driver, "cuStreamSynchronize"));
}

}  // namespace

void settle_copies() {
  static const Synchronize synchronize = find_driver();
  if (synchronize == nullptr) return;
  constexpr int kNoContext = 201;  // this thread has asked CUDA for nothing yet
  // CU_STREAM_LEGACY and CU_STREAM_PER_THREAD: which of them MLX copies on depends on its build.
  for (const std::uintptr_t stream : {1U, 2U}) {
    const int code = synchronize(reinterpret_cast<void*>(stream));
    if (code != 0 && code != kNoContext)
      throw std::runtime_error(fmt::format("[cuda] the device failed with code {}", code));
  }
}

mx::array from_host(const void* data, mx::Shape shape, mx::Dtype dtype) {
  size_t bytes = mx::size_of(dtype);
  for (const int axis : shape) bytes *= static_cast<size_t>(axis);
  mx::allocator::Data memory = mx::allocator::malloc(bytes);
  mx::allocator::Buffer buffer = memory.buffer();
  void* to = buffer.raw_ptr();
  settle_copies();
  if (bytes > 0) std::memcpy(to, data, bytes);
  return mx::array(std::move(memory), std::move(shape), dtype);
}

}  // namespace tandem::tensor
