#include "runner/cache_sizes.h"

#include <doctest/doctest.h>

#include <random>

namespace tandem::runner {
namespace {

constexpr uint64_t kMegabyte = uint64_t{1} << 20;

CacheWants wants(CacheWants w = {}) {
  if (w.page_tokens == 0) w.page_tokens = 32;
  if (w.step_tokens == 0) w.step_tokens = 512;
  if (w.max_context == 0) w.max_context = 32768;
  return w;
}

uint64_t bytes(const CacheSizes& sizes, const MemoryNeed& need) {
  return need.weights + need.workspace + sizes.pages * need.page +
         sizes.window_pages * need.window_page + sizes.state_slots * need.slot;
}

CacheSizes divide(const CacheWants& w, const std::vector<MemoryNeed>& ranks) {
  const auto sizes = cache_sizes(w, ranks);
  REQUIRE(sizes.has_value());
  return *sizes;
}

TEST_CASE("a model that keeps all positions of all layers has pages and nothing else") {
  const std::vector<MemoryNeed> ranks = {{.weights = kMegabyte, .page = 4096},
                                         {.weights = kMegabyte, .workspace = 1000, .page = 8192}};
  const CacheSizes sizes = divide(wants({.limit = 9 * kMegabyte}), ranks);
  CHECK(sizes.pages == (8 * kMegabyte - 1000) / 8192);
  CHECK(sizes.window_pages == 0);
  CHECK(sizes.state_slots == 0);
  CHECK(sizes.state_step == 0);
}

TEST_CASE(
    "windows have the pages of 8 rows or a quarter of the others, and hardly more than those") {
  // A row needs (1023 + 512) / 32 = 47 pages and 3 more.
  const std::vector<MemoryNeed> ranks = {{.page = 1000, .window_page = 5000}};
  const auto sizes_in = [&](uint64_t limit) {
    return divide(wants({.window = 1024, .limit = limit}), ranks);
  };
  const CacheSizes little = sizes_in(600 * 1000);
  CHECK(little.pages == 99);
  CHECK(little.window_pages == 100);
  const CacheSizes more = sizes_in(3'000'000);
  CHECK(more.pages == 1000);
  CHECK(more.window_pages == 400);
  const CacheSizes much = sizes_in(9 * 4'000'000 / 4);
  CHECK(much.pages == 4000);
  CHECK(much.window_pages == 1000);
}

TEST_CASE(
    "where no layer keeps all positions window pages take the memory and rows never run out") {
  const std::vector<MemoryNeed> ranks = {{.window_page = 1000}};
  const CacheSizes sizes =
      divide(wants({.max_context = 8192, .window = 1024, .limit = 700'000}), ranks);
  CHECK(sizes.pages == plan::kMostRows * 8192 / 32);
  CHECK(sizes.window_pages == 700);
  CHECK(divide(wants({.max_context = 8192, .window = 1024, .limit = uint64_t{1} << 40}), ranks)
            .window_pages == sizes.pages + 1);
  const auto small = cache_sizes(wants({.window = 1024, .limit = 49'000}), ranks);
  REQUIRE_FALSE(small.has_value());
  CHECK(small.error().code == ErrorCode::kTooLarge);
}

TEST_CASE("states lie as far apart as makes them no dearer than pages, from 256 tokens to 2048") {
  const auto step_of = [](uint64_t slot, uint64_t page, uint32_t page_tokens = 32) {
    return divide(wants({.page_tokens = page_tokens, .is_recurrent = true, .pages = 100}),
                  {{.page = page, .slot = slot}, {.page = page}})
        .state_step;
  };
  CHECK(step_of(1, 1) == 256);
  CHECK(step_of(16, 1) == 256);
  CHECK(step_of(17, 1) == 512);
  CHECK(step_of(33, 1) == 1024);
  CHECK(step_of(1'000'000, 1) == 2048);
  CHECK(step_of(1, 0) == 2048);
  CHECK(step_of(1, 1, 4096) == 4096);
  CHECK(step_of(1, 1, 48) == 384);
}

TEST_CASE(
    "slots serve 16 rows, then prefixes by a quarter of the rest, but no more than pages have") {
  const std::vector<MemoryNeed> ranks = {{.page = 1000, .slot = 8000}};
  const auto sizes_in = [&](uint64_t limit) {
    return divide(wants({.is_recurrent = true, .limit = limit}), ranks);
  };
  const CacheSizes much = sizes_in(8'256'000);
  CHECK(much.state_slots == 32 + 250);
  CHECK(much.pages == 8256 - 282 * 8);
  CHECK(much.state_step == 256);
  const CacheSizes little = sizes_in(100'000);
  CHECK(little.state_slots == 6 + 1);  // half of the memory, then a quarter of 52,000
  CHECK(little.pages == 44);
  const CacheSizes cheap =
      divide(wants({.is_recurrent = true, .limit = 1'000'000}), {{.page = 1000, .slot = 10}});
  CHECK(cheap.state_slots == 32 + cheap.pages * 32 / 256);
}

TEST_CASE("whatever the model, what is chosen fits on every rank and is the most that does") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    CAPTURE(i);
    std::vector<MemoryNeed> ranks(1 + random() % 4);
    const bool has_window = random() % 2 != 0, is_recurrent = random() % 2 != 0;
    for (MemoryNeed& need : ranks)
      need = {.weights = random() % 1'000'000,
              .workspace = random() % 100'000,
              .page = random() % 4 == 0 ? 0 : random() % 5000,
              .window_page = has_window ? random() % 5000 : 0,
              .slot = is_recurrent && random() % 4 != 0 ? 1 + random() % 50'000 : 0};
    if (is_recurrent) ranks[0].slot = 1 + random() % 50'000;  // stages may have none, but not all
    const CacheWants w = wants({.window = has_window ? 100U : 0U,
                                .is_recurrent = is_recurrent,
                                .limit = random() % 40'000'000});
    const auto sizes = cache_sizes(w, ranks);
    if (!sizes) {
      CHECK(sizes.error().code == ErrorCode::kTooLarge);
      continue;
    }
    CHECK(sizes->pages >= 8);
    CHECK((sizes->window_pages != 0) == has_window);
    CHECK((sizes->state_slots >= 4) == is_recurrent);
    CHECK(sizes->window_pages <= sizes->pages + 1);
    bool is_free = true;
    for (const MemoryNeed& need : ranks) {
      CHECK(bytes(*sizes, need) <= w.limit);
      is_free = is_free && need.page == 0;
    }
    if (is_free || is_recurrent) continue;
    CacheSizes more = *sizes;
    more.pages += 1;
    more.window_pages += has_window ? 1 : 0;
    bool fits = more.pages <= (1U << 22) / 32;
    for (const MemoryNeed& need : ranks) fits = fits && bytes(more, need) <= w.limit;
    CHECK_FALSE(fits);
  }
}

TEST_CASE("numbers that do not fit the model or each other are refused with what would do") {
  const auto refusal = [](const CacheWants& w) {
    const auto sizes = cache_sizes(w, std::vector<MemoryNeed>{{.page = 1, .window_page = 1}});
    REQUIRE_FALSE(sizes.has_value());
    CHECK(sizes.error().code == ErrorCode::kInvalid);
    return sizes.error().message;
  };
  const auto says = [](const std::string& message, const char* words) {
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
  };
  says(refusal(wants({.pages = 9, .window_pages = 9})), "no layer of the model sees a window");
  says(refusal(wants({.window = 33, .pages = 90, .window_pages = 19})), "a row needs 20");
  says(refusal(wants({.pages = 9, .state_slots = 9})), "no layer of the model has such a state");
  says(refusal(wants({.pages = 9, .state_step = 64})), "no layer of the model has such a state");
  says(refusal(wants({.is_recurrent = true, .pages = 9, .state_slots = 1})), "needs 2 slots");
  says(refusal(wants({.is_recurrent = true, .pages = 9, .state_step = 100})), "multiple");
}

}  // namespace
}  // namespace tandem::runner
