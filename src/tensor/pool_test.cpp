// Pools on the CPU, and on the GPU where there is one.
#include "tensor/pool.h"

#include <doctest/doctest.h>

#include <random>

#include "tensor/device.h"
#include "tensor/evaluator.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

std::vector<float> numbers(array x) {
  x = mx::contiguous(x);
  mx::eval(x);
  const float* data = on_host<float>(x);
  return {data, data + x.size()};
}

/// Calls check() with each device as MLX's default.
template <class F>
void for_each_device(F check) {
  std::vector<mx::Device> devices = {mx::Device(mx::Device::cpu)};
  if (best_device() != devices[0]) devices.push_back(best_device());
  for (const mx::Device& device : devices) {
    CAPTURE((device == mx::Device::gpu));
    use_device(device);
    check();
  }
  use_device(mx::Device(mx::Device::cpu));
}

array all_pages(const Pool& pool) {
  std::vector<uint32_t> pages;
  for (int i = 0; i < pool.keys.shape(0); ++i) pages.push_back(static_cast<uint32_t>(i));
  return array(pages.begin(), {static_cast<int>(pages.size())});
}

/// The keys after every write so far.
array keys_now(const Pool& pool) {
  return mx::take(pool.keys, ordered(all_pages(pool), pool.order), 0);
}

TEST_CASE("a reader of a pool sees every write before it in the order, and none after") {
  for_each_device([] {
    for (const bool is_ours : {true, false}) {
      if (is_ours && mx::default_device() != mx::Device::cpu) continue;
      CAPTURE(is_ours);
      Pool pool =
          make_pool({.pages = 2, .page_tokens = 2, .kv_heads = 1, .head_dim = 2}, mx::float32);
      const auto put = [&](int token, float value) {
        const Step step({{.start = static_cast<uint32_t>(token), .tokens = {0}, .pages = {1, 0}}},
                        2);
        const array row({value, value}, {1, 2});
        write(pool, row, row, step);
      };
      for (int token = 0; token < 4; ++token) put(token, 0);
      put(0, 1);
      const array before = mx::sum(keys_now(pool));
      pool.order = mx::astype(mx::reshape(before, {1}), mx::uint32);
      put(0, 5);
      put(3, 2);
      const array after = mx::sum(keys_now(pool));
      const array both = mx::stack({after, before});
      if (is_ours) run_graph(both);
      CHECK(numbers(both) == std::vector<float>{14, 2});
    }
  });
}

TEST_CASE("many writes, copies and reads in one graph happen in their order") {
  for_each_device([] {
    const uint32_t pages = 8, page_tokens = 4, width = 64;
    Pool pool = make_pool(
        {.pages = pages, .page_tokens = page_tokens, .kv_heads = 2, .head_dim = width / 2},
        mx::float32);
    std::vector<float> expected(size_t{pages} * page_tokens * width, 0.0F);
    std::vector<uint32_t> every;
    for (uint32_t p = 0; p < pages; ++p) every.push_back(p);
    const Step whole({{.tokens = std::vector<int32_t>(pages * page_tokens), .pages = every}},
                     page_tokens);
    const array zeros = mx::zeros({static_cast<int>(pages * page_tokens), static_cast<int>(width)});
    write(pool, zeros, zeros, whole);
    std::mt19937 random(5);
    std::vector<array> reads;
    std::vector<std::vector<float>> wanted;
    const size_t page_floats = size_t{page_tokens} * width;
    for (int i = 1; i <= 60; ++i) {
      const uint32_t page = random() % pages, other = (page + 1 + random() % (pages - 1)) % pages;
      if (random() % 3 == 0) {
        copy_pages(pool, std::vector{page}, std::vector{other});
        std::copy_n(expected.begin() + static_cast<ptrdiff_t>(page * page_floats), page_floats,
                    expected.begin() + static_cast<ptrdiff_t>(other * page_floats));
      } else {
        const auto value = static_cast<float>(i);
        const array rows =
            mx::full({static_cast<int>(page_tokens), static_cast<int>(width)}, value);
        const Step step({{.tokens = std::vector<int32_t>(page_tokens), .pages = {page}}},
                        page_tokens);
        write(pool, rows, mx::negative(rows), step);
        std::fill_n(expected.begin() + static_cast<ptrdiff_t>(page * page_floats), page_floats,
                    value);
        reads.push_back(keys_now(pool));
        wanted.push_back(expected);
        pool.order = mx::astype(mx::reshape(mx::max(reads.back()), {1}), mx::uint32);
      }
    }
    mx::eval(reads);
    for (size_t i = 0; i < reads.size(); ++i) {
      CAPTURE(i);
      CHECK((numbers(reads[i]) == wanted[i]));
    }
  });
}

TEST_CASE("rows land in their slots, converted to the pool's type, whatever their strides") {
  for_each_device([] {
    Pool pool =
        make_pool({.pages = 3, .page_tokens = 2, .kv_heads = 1, .head_dim = 2}, mx::float16);
    const Step step({{.start = 1, .tokens = {0, 0}, .pages = {2, 0}}}, 2);
    const array k = mx::transpose(array({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2}));
    write(pool, k, mx::multiply(k, array(10.0F)), step);
    const auto kept = numbers(mx::astype(
        mx::take(pool.values, ordered(array({2U, 0U}, {2}), pool.order), 0), mx::float32));
    CHECK(kept[2] == 10);
    CHECK(kept[3] == 30);
    CHECK(kept[4] == 20);
    CHECK(kept[5] == 40);
  });
}

TEST_CASE("values of another width than keys are written and copied whole") {
  for_each_device([] {
    Pool pool = make_pool(
        {.pages = 3, .page_tokens = 2, .kv_heads = 1, .head_dim = 3, .value_dim = 1}, mx::float32);
    CHECK(pool.bytes() == 3 * 2 * (3 + 1) * sizeof(float));
    const Step step({{.start = 0, .tokens = {0, 0}, .pages = {2}}}, 2);
    write(pool, array({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3}), array({7.0F, 8.0F}, {2, 1}),
          step);
    copy_pages(pool, std::vector{2U}, std::vector{0U});
    const array page = ordered(array({0U}, {1}), pool.order);
    CHECK(numbers(mx::take(pool.keys, page, 0)) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(numbers(mx::take(pool.values, page, 0)) == std::vector<float>{7, 8});
  });
}

TEST_CASE("copied pages are whole and the pool stays where it is") {
  for_each_device([] {
    Pool pool =
        make_pool({.pages = 3, .page_tokens = 2, .kv_heads = 1, .head_dim = 1}, mx::float32);
    const void* place = pool.keys.buffer().ptr();
    const Step step({{.start = 0, .tokens = {0, 0}, .pages = {2}}}, 2);
    write(pool, array({1.0F, 2.0F}, {2, 1}), array({3.0F, 4.0F}, {2, 1}), step);
    copy_pages(pool, std::vector{2U}, std::vector{0U});
    mx::eval(pool.order);
    CHECK(pool.keys.buffer().ptr() == place);
    CHECK(pool.keys.data<float>()[0] == 1);
    CHECK(pool.keys.data<float>()[1] == 2);
    CHECK(pool.values.data<float>()[1] == 4);
  });
}

}  // namespace
}  // namespace tandem::tensor
