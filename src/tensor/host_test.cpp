#include "tensor/host.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tensor/device.h"

namespace tandem::tensor {
namespace {

namespace mx = mlx::core;

/// New sizes, so that memory comes fresh, then the same ones again, so that it comes from what
/// devices have used.
TEST_CASE("host: values cross to the device and back, whatever memory they come to lie in") {
  const mx::Device before = mx::default_device();
  for (const mx::Device& device : {mx::Device(mx::Device::cpu), best_device()}) {
    mx::set_default_device(device);
    for (int round = 0; round < 3; ++round) {
      for (const int size : {1, 2, 3, 5, 31, 255, 257, 1000, 4097, 70'000}) {
        CAPTURE(size);
        std::vector<int32_t> values(static_cast<size_t>(size));
        std::iota(values.begin(), values.end(), round);
        std::vector<mx::array> sums;
        for (int i = 0; i < 4; ++i) sums.push_back(mx::add(from_host(values), mx::array(i)));
        mx::eval(sums);
        for (int i = 0; i < 4; ++i) {
          const int32_t* got = on_host<int32_t>(sums[static_cast<size_t>(i)]);
          for (int32_t& each : values) each += i;
          CHECK(std::equal(values.begin(), values.end(), got));
          for (int32_t& each : values) each -= i;
        }
      }
    }
  }
  mx::set_default_device(before);
}

TEST_CASE("host: what is written into a device's array is there for the device") {
  const mx::Device before = mx::default_device();
  for (const mx::Device& device : {mx::Device(mx::Device::cpu), best_device()}) {
    mx::set_default_device(device);
    mx::array values = mx::contiguous(mx::zeros({1000}, mx::float32));
    mx::eval(values);
    std::fill_n(to_write<float>(values), values.size(), 2.0F);
    const mx::array sum = mx::sum(values);
    mx::eval(sum);
    CHECK(*on_host<float>(sum) == 2000);
  }
  mx::set_default_device(before);
}

TEST_CASE("host: an empty array has its shape and no bytes") {
  const mx::array none = from_host(std::vector<float>{}, {0, 7});
  CHECK(none.shape() == mx::Shape{0, 7});
  CHECK(none.nbytes() == 0);
}

}  // namespace
}  // namespace tandem::tensor
