#include "schedule/driver_test.h"

using namespace tandem;
using namespace tandem::schedule;

namespace {

/// A hybrid model: keys and values in some layers, a state in others.
SchedulerOptions hybrid(uint32_t slots) {
  return {.pages = 2000,
          .page_tokens = 16,
          .max_context = 20'000,
          .state_slots = slots,
          .state_step = 512};
}

/// Every third layer sees all, the others a window.
SchedulerOptions windowed(uint32_t window_pages) {
  return {.pages = 2000,
          .page_tokens = 16,
          .max_context = 20'000,
          .window = 100,
          .window_pages = window_pages,
          .step_tokens = 64};
}

Ids turn_after(Ids prompt, gen::RequestId id, size_t answer, const Ids& more) {
  prompt.insert(prompt.end(), answer, Driver::token_of(id));
  prompt.insert(prompt.end(), more.begin(), more.end());
  return prompt;
}

uint64_t computed_by(Driver& driver, gen::RequestId id, Ids prompt) {
  const uint64_t before = driver.scheduler.counts().computed_tokens;
  driver.add(id, std::move(prompt), 1);
  driver.finish();
  return driver.scheduler.counts().computed_tokens - before;
}

}  // namespace

TEST_CASE("sides: a hybrid model computes at most one snapshot step of a changed prompt again") {
  Driver driver(hybrid(64));
  driver.add(1, count_up(6000), 20);
  driver.finish();
  Ids other_last_line = count_up(6000);
  std::fill(other_last_line.end() - 30, other_last_line.end(), 9);
  CHECK(computed_by(driver, 2, other_last_line) <= 512 + 30);
  Ids other_middle = count_up(6000);
  other_middle[3500] = 9;
  CHECK(computed_by(driver, 3, other_middle) <= 512 + 2500);
  CHECK(computed_by(driver, 4, count_up(6000)) <= 16);  // A, B, A: kept before the last page
}

TEST_CASE("sides: the next turn of a hybrid model goes on with the state at the answer's end") {
  Driver driver(hybrid(64));
  driver.add(1, count_up(1003), 21);
  driver.finish();
  const Ids next = turn_after(count_up(1003), 1, 21, {7, 8, 9});
  driver.add(2, next, 1);
  driver.step();
  CHECK(driver.cached[2] == 1023);  // the last token drawn was never computed
  REQUIRE(driver.row(2)->state);
  CHECK(driver.plan.copies.size() == 1);
}

TEST_CASE("sides: states that are wanted elsewhere go, least recently used first") {
  Driver driver(hybrid(6));  // one's own, another's, and four
  driver.add(1, count_up(6000), 2);
  driver.finish();
  CHECK(driver.scheduler.counts().states.cached <= 6);
  CHECK(driver.scheduler.counts().states.total() == 6);
  CHECK(driver.scheduler.counts().states.cached > 0);
  const uint64_t again = computed_by(driver, 2, turn_after(count_up(5990), 1, 0, {1, 2}));
  CHECK(again <= 512 + 12);  // the deepest are still there
  CHECK(computed_by(driver, 3, turn_after(count_up(600), 1, 0, {1, 2})) > 512);  // others went
}

TEST_CASE("sides: rows that two states do not suffice for wait") {
  Driver driver(hybrid(5));
  for (gen::RequestId id = 1; id <= 6; ++id)
    driver.add(id, count_up(100, static_cast<TokenId>(1000 * id)), 30, std::to_string(id));
  size_t most = 0;
  while (driver.step() && !driver.scheduler.empty()) most = std::max(most, driver.plan.rows.size());
  CHECK(most == 2);
  CHECK(driver.ended.size() == 6);
}

TEST_CASE("sides: rows hold window pages for what they see, however long they grow") {
  Driver driver(windowed(32));
  driver.add(1, count_up(3000), 2000);
  driver.add(2, count_up(3000, 5000), 2000);
  while (driver.ended.size() < 2) {
    REQUIRE(driver.step());
    for (const plan::Row& row : driver.plan.rows) {
      const uint32_t first_seen = row.start < 100 ? 0 : row.start - 99;
      CHECK(row.window_start == first_seen / 16 * 16);
      const size_t end = row.start + row.tokens.size();
      CHECK(row.window_pages.size() == (end + 15) / 16 - row.window_start / 16);
      CHECK(row.window_pages.size() <= (100 + 64) / 16 + 2);
    }
    const SchedulerCounts counts = driver.scheduler.counts();
    CHECK(counts.window_pages.total() == 32);
    CHECK(counts.window_pages.referenced <= 2 * ((100 + 64) / 16 + 2));
  }
  // All but those that a last row saw.
  const uint64_t left = driver.scheduler.counts().window_pages_left;
  CHECK(left >= 2 * (5000 - 100 - 16) / 16);
  CHECK(left <= 2 * 5000 / 16);
}

TEST_CASE("sides: a prefix is reused where its window pages are still there") {
  Driver driver(windowed(32));
  driver.add(1, count_up(1000), 2);
  driver.finish();
  // At its end, in a page that is copied in both pools.
  driver.add(2, turn_after(count_up(1000), 1, 1, {5, 6}), 1);
  driver.step();
  CHECK(driver.cached[2] == 1001);
  CHECK(driver.plan.copies.size() == 1);
  CHECK(driver.plan.window_copies.size() == 1);
  driver.finish();
  // In the middle the window went to later pages: computed again, though the pages are there.
  const uint64_t middle = computed_by(driver, 3, turn_after(count_up(200), 1, 0, {5, 6}));
  CHECK(middle == 202);
}

TEST_CASE(
    "sides: a row that goes on in pages computed meanwhile holds no more than its window needs") {
  // A window longer than a step: B waits for A's pages, then adopts less than a window of them.
  SchedulerOptions options = windowed(64);
  options.window = 256;
  Driver driver(options);
  driver.add(1, count_up(640), 1, "a");
  driver.add(2, count_up(700), 1, "b");
  size_t most = 0;
  while (!driver.scheduler.empty()) {
    REQUIRE(driver.step());
    for (const gen::RequestId id : {1U, 2U})
      if (const Sequence* at = driver.scheduler.find(id))
        most = std::max(most, at->window_pages.size());
  }
  CHECK(most <= (255 + 64) / 16 + 3);
}

TEST_CASE("sides: the state at an answer's end serves a second branch as well") {
  Driver driver(hybrid(64));
  driver.add(1, count_up(1003), 20);
  driver.finish();
  for (const TokenId other : {7, 8}) {
    driver.add(static_cast<gen::RequestId>(other),
               turn_after(count_up(1003), 1, 20, Ids(40, other)), 2);
    driver.step();
    CHECK(driver.cached[static_cast<gen::RequestId>(other)] == 1022);
    driver.finish();
  }
}
