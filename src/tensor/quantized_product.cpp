#include "tensor/quantized_product.h"

#include <string>

#include "tensor/device.h"

namespace tandem::tensor {
namespace {

/// MLX 0.32 takes a kernel of its own on Hopper GPUs where a row of affine codes is one group (64
/// inputs in groups of 64), whose results are far off.
bool is_one_group(const array& x, const format::Quantization& q) {
  return q.mode == format::QuantMode::kAffine && x.shape(-1) <= q.group_size;
}

}  // namespace

array quantized_product(const array& x,
                        const array& weight,
                        const array& scales,
                        const std::optional<array>& biases,
                        const format::Quantization& quantization) {
  const auto& [bits, group, mode] = quantization;
  const std::string name(format::name(mode));
  if (is_one_group(x, quantization) && mx::default_device() != mx::Device::cpu) {
    const array numbers =
        mx::dequantize(weight, scales, biases, group, bits, name, std::nullopt, x.dtype());
    return mx::matmul(x, mx::swapaxes(numbers, -1, -2));
  }
  return mx::quantized_matmul(x, weight, scales, biases, true, group, bits, name);
}

}  // namespace tandem::tensor
