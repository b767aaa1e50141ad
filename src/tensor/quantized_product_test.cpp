#include "tensor/quantized_product.h"

#include <doctest/doctest.h>

#include "tensor/device.h"

namespace tandem::tensor {
namespace {

float largest_difference(const array& a, const array& b) {
  const array most = mx::max(mx::abs(mx::subtract(a, b)));
  mx::eval(most);
  return most.item<float>();
}

TEST_CASE("a product with quantized rows is that with their numbers, on every device") {
  struct Shape {
    int inputs, group, bits;
  };
  const mx::Device before = mx::default_device();
  for (const mx::Device& device : {mx::Device(mx::Device::cpu), best_device()}) {
    mx::set_default_device(device);
    for (const auto& [inputs, group, bits] :
         {Shape{64, 64, 4}, {128, 128, 4}, {64, 64, 8}, {32, 32, 4}, {64, 32, 4}, {192, 64, 4}}) {
      for (const int rows : {1, 7, 40}) {
        CAPTURE(inputs);
        CAPTURE(group);
        CAPTURE(rows);
        const array x = mx::random::normal({rows, inputs});
        const std::vector<array> q = mx::quantize(mx::random::normal({96, inputs}), group, bits);
        const array numbers = mx::dequantize(q[0], q[1], q[2], group, bits);
        const array got =
            quantized_product(x, q[0], q[1], q[2], {.bits = bits, .group_size = group});
        CHECK(largest_difference(got, mx::matmul(x, mx::transpose(numbers))) < 1e-3F);
      }
    }
  }
  mx::set_default_device(before);
}

}  // namespace
}  // namespace tandem::tensor
