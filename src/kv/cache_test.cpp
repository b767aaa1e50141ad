#include "kv/cache.h"

#include <doctest/doctest.h>

#include "tensor/device.h"
#include "tensor/evaluator.h"
#include "tensor/host.h"
#include "tensor/state_sum_test.h"

namespace tandem::kv {
namespace {

namespace mx = tensor::mx;
using tensor::array;
using tensor::PageGroup;

constexpr CacheShape kRoom = {.page_tokens = 2, .pages = 6, .window_pages = 3, .state_slots = 5};
constexpr LayerShape kAllLayer = {.kv_heads = 1, .head_dim = 2};
constexpr LayerShape kWindowLayer = {.group = PageGroup::kWindow, .kv_heads = 1, .head_dim = 2};
constexpr LayerShape kLatentLayer = {
    .kv_heads = 1, .head_dim = 6, .latent_dim = 4, .choice_dim = 3};
constexpr LayerShape kTwiceLayer = {.kv_heads = 1, .head_dim = 2, .attentions = 2};
constexpr LayerShape kNarrowLayer = {.kv_heads = 1, .head_dim = 2, .value_dim = 1};
constexpr LayerShape kStateLayer = {.state_floats = 7};

/// Attends with keys of zero, so that what comes out is the mean of all values that tokens see.
std::vector<float> mean_of_values(Layer& layer,
                                  const tensor::Step& step,
                                  const std::vector<float>& values,
                                  uint32_t window,
                                  uint32_t attention = 0) {
  const int tokens = static_cast<int>(values.size());
  const array zeros = mx::zeros({tokens, 2});
  const array v = mx::repeat(array(values.begin(), {tokens, 1}), 2, 1);
  const tensor::AttentionShape shape = {
      .heads = 1, .kv_heads = 1, .head_dim = 2, .kv_of_head = {0}, .window = window, .rope = {}};
  const array out = mx::contiguous(
      layer.attend({.q = zeros, .k = zeros, .v = v}, shape, step, {}, nullptr, attention));
  mx::eval(out);
  std::vector<float> means;
  for (int t = 0; t < tokens; ++t) means.push_back(tensor::on_host<float>(out)[2 * t]);
  return means;
}

TEST_CASE("layers keep what their shape says, in as many bytes") {
  tensor::use_device(mx::Device(mx::Device::cpu));
  Cache cache({kAllLayer, kWindowLayer, kStateLayer, {}}, kRoom, {});
  CHECK_FALSE(cache.layer(0).is_empty());
  CHECK_FALSE(cache.layer(1).is_empty());
  CHECK_FALSE(cache.layer(2).is_empty());
  CHECK(cache.layer(3).is_empty());
  CHECK(cache.bytes() == 6 * kAllLayer.page_bytes(2, 4) + 3 * kWindowLayer.page_bytes(2, 4) +
                             5 * kStateLayer.slot_bytes());
  CHECK(cache.layer(2).states().slots() == 5);
  CHECK(cache.layer(2).states().floats() == 7);
  CHECK(cache.orders().size() == 3);
  const Cache latent({kLatentLayer}, kRoom, {});
  CHECK(kLatentLayer.page_bytes(2, 4) == 2 * (6 + 3) * 4);
  CHECK(latent.bytes() == 6 * kLatentLayer.page_bytes(2, 4));
  CHECK(latent.orders().size() == 2);
}

TEST_CASE("attentions of one layer keep their own keys and values, which are copied together") {
  tensor::use_device(mx::Device(mx::Device::cpu));
  Cache cache({kTwiceLayer}, kRoom, {});
  CHECK(cache.bytes() == 6 * kTwiceLayer.page_bytes(2, 4));
  CHECK(kTwiceLayer.page_bytes(2, 4) == 2 * kAllLayer.page_bytes(2, 4));
  CHECK(cache.orders().size() == 2);
  const tensor::Step step({{.tokens = {0, 0}, .pages = {4}}}, 2);
  CHECK(mean_of_values(cache.layer(0), step, {1, 3}, 0, 0) == std::vector<float>{1, 2});
  CHECK(mean_of_values(cache.layer(0), step, {5, 9}, 0, 1) == std::vector<float>{5, 7});
  cache.copy({.all = {.from = {4}, .to = {2}}});
  const tensor::Step next({{.start = 2, .tokens = {0}, .pages = {2, 0}}}, 2);
  CHECK(mean_of_values(cache.layer(0), next, {2}, 0, 0) == std::vector<float>{2});
  const float mean = mean_of_values(cache.layer(0), next, {1}, 0, 1)[0];
  CHECK(double{mean} == doctest::Approx(5));
}

TEST_CASE("values narrower than keys take no more room than they have") {
  tensor::use_device(mx::Device(mx::Device::cpu));
  Cache cache({kNarrowLayer}, kRoom, {});
  CHECK(cache.bytes() == 6 * 2 * 3 * 4);
  CHECK(kNarrowLayer.page_bytes(2, 4) == 2 * 3 * 4);
}

TEST_CASE("a layer that reads another's keys and values keeps none, and sees what that one wrote") {
  tensor::use_device(mx::Device(mx::Device::cpu));
  Cache cache({kStateLayer, kAllLayer, {.source = 1}}, kRoom, {});
  CHECK(&cache.layer(2) == &cache.layer(1));
  CHECK(cache.bytes() == 6 * kAllLayer.page_bytes(2, 4) + 5 * kStateLayer.slot_bytes());
  const tensor::Step step({{.tokens = {0, 0, 0}, .pages = {4, 1}}}, 2);
  CHECK(mean_of_values(cache.layer(1), step, {1, 3, 5}, 0) == std::vector<float>{1, 2, 3});
  const array zeros = mx::zeros({3, 2});
  const tensor::AttentionShape shape = {
      .heads = 1, .kv_heads = 1, .head_dim = 2, .kv_of_head = {0}, .only_reads = true, .rope = {}};
  const array out =
      mx::contiguous(cache.layer(2).attend({.q = zeros, .k = zeros, .v = zeros}, shape, step, {}));
  mx::eval(out);
  for (int t = 0; t < 3; ++t)
    CHECK(double{tensor::on_host<float>(out)[2 * t]} == doctest::Approx(1 + t));
}

TEST_CASE("copies go to the layers whose pages they name, and states go on after a failed step") {
  tensor::use_device(mx::Device(mx::Device::cpu));
  Cache cache({kAllLayer, kWindowLayer, kStateLayer}, kRoom, {});
  const tensor::Step first({{.tokens = {0, 0, 0, 0},
                             .pages = {4, 1},
                             .window_pages = {1, 2},
                             .saves = {{.tokens = 4, .slot = 3}}}},
                           2);
  mean_of_values(cache.layer(0), first, {1, 2, 3, 4}, 0);
  mean_of_values(cache.layer(1), first, {1, 2, 3, 4}, 3);
  const array ones = mx::ones({4, 7});
  mx::eval(state_sum(tensor::Path::kPlain, cache.layer(2).states(), {0, 7}, ones, first));
  mx::eval(cache.orders());

  const array never = mx::add(cache.layer(2).states().order, array(1U));
  cache.layer(2).states().order = never;
  cache.forget_pending();

  cache.copy({.all = {.from = {1}, .to = {0}}, .window = {.from = {2}, .to = {0}}});
  const tensor::Step second({{.start = 4,
                              .tokens = {0},
                              .pages = {4, 0, 5},
                              .window_start = 2,
                              .window_pages = {0, 1},
                              .state = 3,
                              .saves = {{.tokens = 1, .slot = 0}}}},
                            2);
  CHECK(mean_of_values(cache.layer(0), second, {5}, 0) == std::vector<float>{3});
  CHECK(mean_of_values(cache.layer(1), second, {5}, 3) == std::vector<float>{4});
  const array sum =
      state_sum(tensor::Path::kPlain, cache.layer(2).states(), {0, 7}, mx::ones({1, 7}), second);
  mx::eval(sum);
  CHECK(tensor::on_host<float>(sum)[6] == 5);
}

}  // namespace
}  // namespace tandem::kv
