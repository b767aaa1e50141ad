#include "tensor/device.h"

namespace tandem::tensor {

namespace mx = mlx::core;

mx::Device best_device() {
  const mx::Device gpu(mx::Device::gpu);
  return mx::is_available(gpu) ? gpu : mx::Device(mx::Device::cpu);
}

void use_device(const mx::Device& device) {
  if (mx::default_device() != device) mx::set_default_device(device);
}

}  // namespace tandem::tensor
