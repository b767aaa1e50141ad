#include "plan/codec.h"

#include <doctest/doctest.h>

#include <random>

#include "plan/samples_test.h"

namespace tandem::plan {
namespace {

StepPlan random_plan(std::mt19937_64& random) {
  StepPlan plan{.epoch = static_cast<uint32_t>(random()), .sequence = random()};
  const auto some = [&](size_t most) { return random() % (most + 1); };
  for (size_t i = some(3); i > 0; --i) {
    plan.copies.push_back({static_cast<PageId>(random()), static_cast<PageId>(random())});
  }
  for (size_t i = some(5); i > 0; --i) {
    Row row{.request = random(),
            .numeric_class = static_cast<NumericClass>(some(1)),
            .start = static_cast<uint32_t>(random()),
            .wants_logits = some(1) == 1};
    for (size_t t = some(20); t > 0; --t) row.tokens.push_back(static_cast<TokenId>(random()));
    for (size_t run = some(4); run > 0; --run) {
      auto page = static_cast<PageId>(random());
      for (size_t p = some(6); p > 0; --p) row.pages.push_back(page++);
    }
    if (some(1) == 1) {
      row.draw = Draw{.temperature = static_cast<float>(some(100)) / 50,
                      .top_p = static_cast<float>(some(100)) / 100,
                      .top_k = static_cast<uint32_t>(random()),
                      .seed = random(),
                      .choice = static_cast<uint32_t>(some(3))};
    }
    if (some(1) == 1)
      row.reuse = IndexReuse{.most_age = static_cast<uint32_t>(some(48)),
                             .from = static_cast<uint32_t>(random())};
    if (some(1) == 1) row.pooling = static_cast<gen::Pooling>(some(1));
    plan.rows.push_back(std::move(row));
  }
  return plan;
}

TEST_CASE("plan codec: what is encoded is decoded, and encodes to the same bytes") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const StepPlan plan = random_plan(random);
    const Bytes bytes = encode(plan);
    const auto decoded = decode_plan(bytes);
    REQUIRE(decoded);
    CHECK(*decoded == plan);
    CHECK(encode(*decoded) == bytes);
  }
}

TEST_CASE("plan codec: every proper prefix and every longer string is corrupt") {
  Bytes bytes = encode(samples::plan());
  for (size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    const auto cut = decode_plan(std::span(bytes).first(size));
    REQUIRE_FALSE(cut);
    CHECK(cut.error().code == ErrorCode::kCorrupt);
  }
  bytes.push_back(std::byte{0});
  REQUIRE_FALSE(decode_plan(bytes));
}

TEST_CASE("plan codec: another version is refused by name of both versions") {
  Bytes bytes = encode(samples::plan());
  bytes[0] = std::byte{9};
  const auto refused = decode_plan(bytes);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message == "[plan.codec] format version 9, this build reads 6");
}

TEST_CASE("plan codec: bytes that decode but are not canonical do not exist") {
  const Bytes good = encode(samples::plan());
  std::mt19937 random(2);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = good;
    for (int flip = 0; flip < 2; ++flip) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    const auto decoded = decode_plan(bytes);
    if (!decoded) continue;
    ++accepted;
    REQUIRE(encode(*decoded) == bytes);
  }
  CHECK(accepted > 100);
}

TEST_CASE("plan codec: a short plan cannot name more pages than the bound") {
  Writer writer;
  const uint32_t one = 1;
  writer(kFormatVersion, uint32_t{1}, uint64_t{0}, uint32_t{0}, uint32_t{0}, one);  // one row
  writer(uint64_t{1}, NumericClass::kStep, uint32_t{0}, std::vector<int>{});        // no tokens
  writer(one, uint32_t{0}, uint32_t{0xffffffff}, false, false);  // one run of 4 G
  const auto refused = decode_plan(writer.bytes());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kCorrupt);
}

TEST_CASE("plan codec: a page table of consecutive pages costs 12 bytes") {
  StepPlan with{.rows = {Row{.tokens = {1}}}};
  const size_t without_pages = encode(with).size();
  for (PageId page = 100; page < 20100; ++page) with.rows[0].pages.push_back(page);
  CHECK(encode(with).size() == without_pages + 8);
}

}  // namespace
}  // namespace tandem::plan
