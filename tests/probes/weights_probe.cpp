// Weights are used where the file is mapped: without a copy, without counting as memory, for as
// long as an array needs them.
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "host_op.h"

namespace probe {
namespace {

/// An array over foreign memory. MLX's CPU buffers point 8 bytes before their data.
array wrap(std::byte* data, mx::Shape shape, mx::Dtype dtype, std::shared_ptr<void> keeper) {
  const mx::allocator::Buffer buffer(data - 8);
  return array(mx::allocator::Data(buffer, [keeper](mx::allocator::Buffer) {}), std::move(shape),
               dtype);
}

std::shared_ptr<std::vector<std::byte>> copy_of(const array& a, size_t offset) {
  auto bytes = std::make_shared<std::vector<std::byte>>(a.nbytes() + offset);
  std::memcpy(bytes->data() + offset, a.data<std::byte>(), a.nbytes());
  return bytes;
}

}  // namespace

TEST_CASE(
    "weights: a wrapped array is the foreign memory, uncounted and kept until its last user") {
  auto memory = std::make_shared<std::vector<std::byte>>(8 + (size_t{4} << 20U), std::byte{0});
  const size_t before = mx::get_active_memory();
  const std::weak_ptr<void> alive = memory;
  {
    std::optional<array> a = wrap(memory->data() + 8, {1 << 20}, mx::float32, memory);
    CHECK(a->data<std::byte>() == memory->data() + 8);
    CHECK(a->status() == array::available);
    CHECK(mx::get_active_memory() == before);
    memory.reset();
    array sum = mx::sum(*a);
    a.reset();
    CHECK(!alive.expired());  // the graph still needs it
    CHECK(sum.item<float>() == 0.0F);
  }
  mx::synchronize();
  CHECK(alive.expired());
}

TEST_CASE("weights: wrapped memory is never donated, so read-only pages are safe") {
  auto memory = std::make_shared<std::vector<std::byte>>(8 + 4096, std::byte{0});
  array negated = [&] {
    array a = wrap(memory->data() + 8, {1024}, mx::float32, memory);
    CHECK(!a.is_donatable());
    return -std::move(a);
  }();
  mx::eval(negated);
  CHECK(negated.data<std::byte>() != memory->data() + 8);
  CHECK((*memory)[8] == std::byte{0});
}

TEST_CASE("weights: quantized products read wrapped memory at any alignment, with equal results") {
  const array w = mx::random::normal({64, 128});
  const Arrays q = mx::quantize(w, 32, 4);
  array x = mx::random::normal({3, 128});
  array expected = mx::quantized_matmul(x, q[0], q[1], q[2], true, 32, 4);
  mx::eval(q[0], q[1], q[2], x, expected);
  for (const size_t offset : {8U, 9U, 12U, 35U}) {
    Arrays wrapped;
    for (const array& part : q) {
      auto memory = copy_of(part, offset);
      std::byte* data = memory->data() + offset;
      wrapped.push_back(wrap(data, part.shape(), part.dtype(), memory));
    }
    const array got = mx::quantized_matmul(x, wrapped[0], wrapped[1], wrapped[2], true, 32, 4);
    CHECK(mx::array_equal(got, expected).item<bool>());
    const array back = mx::dequantize(wrapped[0], wrapped[1], wrapped[2], 32, 4);
    CHECK(mx::array_equal(back, mx::dequantize(q[0], q[1], q[2], 32, 4)).item<bool>());
  }
}

TEST_CASE("weights: the pointer constructor copies, so it is no way to map a file") {
  std::vector<float> data(16, 1.0F);
  bool released = false;
  const array a(data.data(), {16}, mx::float32, [&](void*) { released = true; });
  CHECK(a.data<float>() != data.data());
  CHECK(released);
}

}  // namespace probe
