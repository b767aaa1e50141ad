#include "tensor/head_weights.h"

#include <doctest/doctest.h>

#include <cstring>

#include "format/testdata/memory_checkpoint.h"
#include "kernels/scalar_type.h"

namespace tandem::tensor {
namespace {

using format::Dtype;

template <class T>
format::Tensor tensor_of(Dtype dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
  std::memcpy(bytes->data(), values.data(), bytes->size());
  return {.dtype = dtype, .shape = std::move(shape), .bytes = *bytes, .owner = bytes};
}

std::vector<float> floats_in(const format::Tensor& t, kernels::ScalarType type) {
  std::vector<float> out(static_cast<size_t>(t.shape[0] * t.shape[1]));
  for (size_t i = 0; i < out.size(); ++i) out[i] = kernels::load_scalar(t.bytes.data(), type, i);
  return out;
}

Weights nowhere() {
  return {std::make_shared<format::MemoryCheckpoint>(nlohmann::json::object()), {}, {}, {}};
}

TEST_CASE("a turned matrix has the same numbers in the same type") {
  const std::vector<float> want = {1, 2, -3, 4, 0.5F, -6};  // [3, 2]
  const auto check = [&](const format::Tensor& weight, kernels::ScalarType type) {
    const MappedMatrix out = turned(nowhere(), {.name = "m", .weight = weight, .quantization = {}});
    CHECK(out.weight.dtype == weight.dtype);
    CHECK(out.weight.shape == std::vector<int64_t>{3, 2});
    CHECK(floats_in(out.weight, type) == want);
  };
  const std::vector<float> from = {1, -3, 0.5F, 2, 4, -6};  // [2, 3]
  check(tensor_of(Dtype::kF32, {2, 3}, from), kernels::ScalarType::kF32);
  std::vector<uint16_t> halves, brains;
  for (const float x : from) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    halves.push_back(kernels::to_f16(x));
    brains.push_back(static_cast<uint16_t>(bits >> 16));
  }
  check(tensor_of(Dtype::kF16, {2, 3}, halves), kernels::ScalarType::kF16);
  check(tensor_of(Dtype::kBF16, {2, 3}, brains), kernels::ScalarType::kBf16);
}

TEST_CASE("a turned matrix of codes is dense, in 16 bits where its scales were") {
  MappedMatrix from{
      .name = "m", .weight = {}, .quantization = format::Quantization{.bits = 8, .group_size = 32}};
  from.weight =
      tensor_of<uint32_t>(Dtype::kU32, {1, 8}, {0x03020100, 0, 0, 0, 0, 0, 0, 0xff000000});
  for (const bool is_half : {false, true}) {
    const auto numbers = [&](float x) {
      return is_half ? tensor_of<uint16_t>(Dtype::kF16, {1, 1}, {kernels::to_f16(x)})
                     : tensor_of<float>(Dtype::kF32, {1, 1}, {x});
    };
    from.scales = numbers(0.5F);
    from.biases = numbers(-1);
    const MappedMatrix out = turned(nowhere(), from);
    CHECK(!out.quantization);
    CHECK(out.weight.dtype == (is_half ? Dtype::kF16 : Dtype::kF32));
    CHECK(out.weight.shape == std::vector<int64_t>{32, 1});
    const auto values =
        floats_in(out.weight, is_half ? kernels::ScalarType::kF16 : kernels::ScalarType::kF32);
    CHECK(values[0] == -1);
    CHECK(values[3] == 0.5F);
    CHECK(values[30] == -1);
    CHECK(values[31] == 126.5F);
  }
}

}  // namespace
}  // namespace tandem::tensor
