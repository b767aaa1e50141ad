#include <doctest/doctest.h>

#include <functional>

#include "plan/step_plan.h"

namespace tandem::plan {
namespace {

using Change = std::function<void(gen::Request&)>;

std::optional<Draw> after(const Change& change) {
  gen::Request request{.prompt = {1}, .stop_ids = {2}};
  change(request);
  return draw_of(request);
}

TEST_CASE("draw of a request: greedy and filtered ones are the device's, with their settings") {
  CHECK(after([](auto&) {}) == Draw{});
  CHECK(after([](auto& r) { r.sampling.seed = 9, r.sampling.top_k = 4; }) == Draw{});
  CHECK(
      after([](auto& r) {
        r.sampling = {.temperature = 0.5F, .top_p = 0.9F, .top_k = 7, .min_p = 0.1F};
        r.sampling.seed = 3;
        r.sampling.choice = 2;
      }) ==
      Draw{.temperature = 0.5F, .top_p = 0.9F, .top_k = 7, .min_p = 0.1F, .seed = 3, .choice = 2});
  CHECK(after([](auto& r) { r.sampling.repetition.value = 1; }));
  CHECK(after([](auto& r) { r.sampling.xtc_probability = 1; }));  // greedy ignores it
  CHECK(after([](auto& r) { r.min_tokens = 5, r.ignore_eos = true; }));
  CHECK(after([](auto& r) { r.min_tokens = 5, r.stop_ids.clear(); }));
}

TEST_CASE("draw of a request: the settings that it stands for give it back") {
  const Draw draw{
      .temperature = 0.5F, .top_p = 0.9F, .top_k = 7, .min_p = 0.1F, .seed = 3, .choice = 2};
  CHECK(after([&](auto& r) { r.sampling = sampling_of(draw); }) == draw);
  CHECK(sampling_of(Draw{}) == gen::Sampling{});
}

TEST_CASE("draw of a request: whatever the device cannot do leaves it to the host") {
  for (const Change& change : std::vector<Change>{
           [](auto& r) { r.sampling.repetition.value = 1.1F; },
           [](auto& r) { r.sampling.presence.value = 0.1F; },
           [](auto& r) { r.sampling.frequency.value = -0.1F; },
           [](auto& r) { r.sampling.logit_bias = {{.id = 1, .bias = 2}}; },
           [](auto& r) { r.sampling.temperature = 1, r.sampling.xtc_probability = 0.5F; },
           [](auto& r) { r.logprobs = 0; },
           [](auto& r) { r.grammar = gen::Grammar{.source = "{}"}; },
           [](auto& r) { r.min_tokens = 1; }})
    CHECK_FALSE(after(change));
}

TEST_CASE("draw of a request: it is the same for a resumed one") {
  gen::Request request{.prompt = {1}, .sampling = {.temperature = 1, .seed = 8}, .min_tokens = 3};
  const auto fresh = draw_of(request);
  request.emitted = {4, 5, 6, 7};
  CHECK(draw_of(request) == fresh);
  request.stop_ids = {9};
  CHECK_FALSE(draw_of(request));  // though its min_tokens are over
}

}  // namespace
}  // namespace tandem::plan
