#include <algorithm>
#include <set>

#include "schedule/driver_test.h"

using namespace tandem;
using namespace tandem::schedule;

TEST_CASE("scheduler: a decoding row is in every step while a prompt of 300k tokens prefills") {
  Driver driver({.pages = 20'000, .page_tokens = 16, .max_context = 310'000, .step_tokens = 256});
  driver.add(1, {1, 2, 3}, 5000);
  driver.step();
  driver.add(2, count_up(300'000), 1);
  int steps = 0;
  while (driver.ended.empty()) {
    REQUIRE(driver.step());
    REQUIRE(driver.row(1) != nullptr);
    CHECK(driver.tokens() <= 256);
    ++steps;
  }
  CHECK(steps == (300'000 + 239) / 240);  // 255 tokens beside the decode row, whole pages
}

TEST_CASE("scheduler: prompts in common are computed once, also by requests that run together") {
  Driver driver({.pages = 200, .page_tokens = 4, .max_context = 400, .step_tokens = 32});
  for (gen::RequestId id = 1; id <= 5; ++id) {
    Ids prompt = count_up(100);
    prompt.push_back(1000 + static_cast<TokenId>(id));
    driver.add(id, prompt, 1, std::to_string(id));
  }
  driver.finish();
  const auto counts = driver.scheduler.counts();
  CHECK(counts.computed_tokens <= 5 * 101 - 4 * 100 + 4 * 3);
  uint32_t all_cached = 0;
  for (const auto& [id, tokens] : driver.cached) all_cached += tokens;
  CHECK(all_cached >= 32 + 64 + 96 + 96);  // as of each start; they lead in turn
}

TEST_CASE("scheduler: the next turn reuses prompt and answer, the last page by copy") {
  Driver driver({.pages = 100, .page_tokens = 8, .max_context = 400});
  driver.add(1, count_up(21), 10);
  driver.finish();
  Ids prompt = count_up(21);
  prompt.insert(prompt.end(), 10, Driver::token_of(1));
  prompt.push_back(7);
  driver.add(2, prompt, 1);
  driver.step();
  CHECK(driver.cached[2] == 30);  // the last token drawn was never computed
  CHECK(driver.plan.copies.size() == 1);
  REQUIRE(driver.row(2) != nullptr);
  CHECK(driver.row(2)->start == 30);
  driver.finish();
  driver.add(3, prompt, 1);  // wholly cached: the last token is computed for its logits
  driver.step();
  CHECK(driver.cached[3] == 31);
  CHECK(driver.row(3)->tokens.size() == 1);
}

TEST_CASE("scheduler: strict classes reuse prompt positions in whole pages only") {
  Driver driver({.pages = 100, .page_tokens = 8, .max_context = 400, .strict_classes = true});
  driver.add(1, count_up(21), 30);
  driver.finish();
  Ids prompt = count_up(21);
  prompt.insert(prompt.end(), 30, Driver::token_of(1));
  driver.add(2, prompt, 1);
  driver.step();
  CHECK(driver.cached[2] == 16);
  CHECK(driver.plan.copies.empty());
}

TEST_CASE("scheduler: of an answer that reuses choices nobody reuses anything, of its prompt all") {
  Driver driver({.pages = 100, .page_tokens = 8, .max_context = 400});
  const auto add = [&](gen::RequestId id, Ids prompt, uint32_t reuse) {
    driver.scheduler.add(
        {.id = id, .prompt = std::move(prompt), .max_tokens = 30, .index_reuse = reuse}, {});
  };
  Ids turn = count_up(21);
  turn.insert(turn.end(), 30, Driver::token_of(1));
  turn.push_back(3);
  add(1, count_up(21), 5);
  driver.step();
  CHECK_FALSE(driver.row(1)->reuse.has_value());
  driver.step();
  CHECK(driver.row(1)->reuse == plan::IndexReuse{.most_age = 5, .from = 21});
  driver.finish();
  add(2, turn, 0);
  driver.finish();
  CHECK(driver.cached[2] == 21);
  add(3, turn, 5);  // of an exact answer, as a prompt, all of it
  driver.finish();
  CHECK(driver.cached[3] == 51);
}

TEST_CASE("scheduler: clients take turns, whatever they have queued") {
  Driver driver({.pages = 100, .page_tokens = 8, .max_context = 400, .max_rows = 1});
  for (gen::RequestId id = 1; id <= 5; ++id) driver.add(id, {static_cast<TokenId>(id)}, 2, "many");
  driver.add(10, {10}, 2, "one");
  driver.add(20, {20}, 2, "other");
  driver.finish();
  CHECK(driver.started == std::vector<gen::RequestId>{1, 10, 20, 2, 3, 4, 5});
}

TEST_CASE("scheduler: two long prompts of two clients advance together, a short one beside them") {
  Driver driver({.pages = 1000, .page_tokens = 8, .max_context = 4000, .step_tokens = 128});
  driver.add(1, count_up(3000), 1, "a");
  driver.add(2, count_up(3000, 5000), 1, "b");
  driver.step(), driver.step();
  CHECK(driver.scheduler.find(1)->computed == driver.scheduler.find(2)->computed);
  driver.add(3, count_up(60, 9000), 1, "a");
  driver.step();
  CHECK(driver.ended == std::vector<gen::RequestId>{3});
}

TEST_CASE("scheduler: low priority goes last, but not for ever") {
  Driver driver({.pages = 100, .page_tokens = 8, .max_context = 400, .max_rows = 1});
  driver.add(1, {1}, 2, "a", Priority::kLow);
  driver.add(2, {2}, 2, "a");
  driver.add(3, {3}, 2, "a");
  driver.finish();
  CHECK(driver.started == std::vector<gen::RequestId>{2, 3, 1});
  driver.add(4, {1}, 2, "a", Priority::kLow);
  driver.now += std::chrono::seconds(31);
  driver.add(5, {2}, 2, "b");
  driver.started.clear();
  driver.finish();
  CHECK(driver.started.front() == 4);
}

TEST_CASE("scheduler: an answer that goes on does not wait behind new requests") {
  Driver driver({.pages = 100, .page_tokens = 8, .max_context = 400, .max_rows = 1});
  driver.add(1, {1}, 2, "a");
  driver.add(2, {2}, 2, "b");
  driver.scheduler.add({.id = 3, .client = "a", .prompt = {3}, .emitted = {4, 5}, .max_tokens = 4},
                       driver.now);
  driver.finish();
  CHECK(driver.started == std::vector<gen::RequestId>{3, 2, 1});
}

TEST_CASE("scheduler: low priority requests keep evicting each other's pages, not a session's") {
  Driver driver({.pages = 32, .page_tokens = 8, .max_context = 200});
  driver.add(1, count_up(159), 1);  // a session: 20 pages
  driver.finish();
  for (gen::RequestId id = 2; id < 30; ++id) {
    driver.add(id, count_up(60, static_cast<TokenId>(1000 * id)), 8, "t", Priority::kLow);
    driver.finish();
  }
  driver.add(50, count_up(160), 1);
  driver.step();
  CHECK(driver.cached[50] == 159);
}

TEST_CASE("scheduler: when pages run short the youngest is paused and goes on where it was") {
  Driver driver({.pages = 12, .page_tokens = 4, .max_context = 48, .admit_answer_tokens = 4});
  for (gen::RequestId id = 1; id <= 3; ++id) driver.add(id, {static_cast<TokenId>(id), 5, 6}, 37);
  std::set<uint32_t> positions_of_first;
  while (!driver.scheduler.empty()) {
    REQUIRE(driver.step());
    if (const plan::Row* row = driver.row(1)) {
      CHECK(row->start + row->tokens.size() > positions_of_first.size());
      for (size_t i = 0; i < row->tokens.size(); ++i) {
        CHECK(positions_of_first.insert(row->start + static_cast<uint32_t>(i)).second);
      }
    }
    for (const plan::Row& row : driver.plan.rows) {
      const bool is_prompt = row.start < 3;
      CHECK((row.numeric_class == plan::NumericClass::kChunk) == is_prompt);
      if (is_prompt) CHECK(row.start + row.tokens.size() <= 3);
    }
  }
  CHECK(driver.scheduler.counts().pauses > 0);
  CHECK(driver.ended.front() == 1);  // the oldest never waited: each position computed once
}

TEST_CASE(
    "scheduler: with two steps in flight decode rows share them, chunks of a prompt overlap") {
  Scheduler scheduler(
      {.pages = 200, .page_tokens = 8, .max_context = 800, .depth = 2, .step_tokens = 32});
  for (gen::RequestId id = 1; id <= 4; ++id) {
    scheduler.add({.id = id, .prompt = {static_cast<TokenId>(id)}, .max_tokens = 50}, {});
  }
  const auto rows_of_next = [&] {
    const plan::StepPlan* plan = scheduler.next({});
    const size_t rows = plan == nullptr ? 0 : plan->rows.size();
    scheduler.returned();
    return rows;
  };
  CHECK(rows_of_next() == 4);
  for (gen::RequestId id = 1; id <= 4; ++id) scheduler.append(*scheduler.find(id), 9);
  CHECK(rows_of_next() == 2);
  CHECK(rows_of_next() == 2);
  CHECK(rows_of_next() == 0);
  scheduler.add({.id = 9, .prompt = count_up(100), .max_tokens = 1}, {});
  CHECK(rows_of_next() == 1);
  CHECK(rows_of_next() == 1);
  CHECK(scheduler.find(9)->computed == 64);
}

TEST_CASE("scheduler: a decision over 64 rows of 100k tokens does not touch their page tables") {
  constexpr uint32_t kRows = 64, kLength = 100'000;
  Driver driver({.pages = kRows * (kLength / 16 + 64),
                 .page_tokens = 16,
                 .max_context = kLength + 1000,
                 .max_rows = kRows,
                 .step_tokens = 200'000});
  Scheduler& scheduler = driver.scheduler;
  for (gen::RequestId id = 1; id <= kRows; ++id) {
    driver.add(id, count_up(kLength, static_cast<TokenId>(id * 1'000'000)), 900);
  }
  const auto step = [&] {
    REQUIRE(scheduler.next({}) != nullptr);
    scheduler.returned();
    for (const PlannedRow& row : scheduler.rows()) {
      if (row.wants_logits) scheduler.append(*scheduler.find(row.request), 5);
    }
  };
  while (scheduler.rows().size() < kRows || !scheduler.rows().front().wants_logits) step();
  constexpr int kSteps = 300;
  auto best = Duration::max();
  for (int i = 0; i < kSteps; ++i) {
    const auto begin = SteadyClock().now();
    step();
    best = std::min(best, SteadyClock().now() - begin);
  }
  CHECK(scheduler.rows().size() == kRows);
  MESSAGE("a step's decision: " << best.count() / 1000 << " us");
  CHECK(best < std::chrono::microseconds(500));
}

namespace {

/// A step's rows, with nothing appended.
std::vector<plan::Row> planned(Scheduler& scheduler) {
  const plan::StepPlan* plan = scheduler.next({});
  const auto rows = plan == nullptr ? std::vector<plan::Row>{} : plan->rows;
  scheduler.returned();
  return rows;
}

}  // namespace

TEST_CASE("scheduler: a row drawn by the device goes on at once, up to max_tokens and no further") {
  Scheduler scheduler(
      {.pages = 40, .page_tokens = 4, .max_context = 100, .depth = 9, .draws = true});
  Sequence& sequence = scheduler.add({.id = 1, .prompt = {7, 8, 9}, .max_tokens = 4}, {});
  CHECK(planned(scheduler)[0].tokens == Ids{7, 8, 9});
  for (uint32_t i = 0; i < 3; ++i) {
    const auto rows = planned(scheduler);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].tokens == Ids{plan::kDrawn});
    CHECK(rows[0].start == 3 + i);
    CHECK(rows[0].draw == plan::Draw{});
    CHECK_FALSE(rows[0].wants_logits);
    CHECK(rows[0].numeric_class == plan::NumericClass::kStep);
  }
  CHECK(planned(scheduler).empty());
  for (TokenId token = 20; token < 24; ++token) scheduler.append(sequence, token);
  CHECK(sequence.length() == sequence.limit);
  CHECK(scheduler.is_consistent());
}

TEST_CASE("scheduler: a row for the host waits for its token while drawn ones go on") {
  Scheduler scheduler(
      {.pages = 40, .page_tokens = 4, .max_context = 100, .depth = 2, .draws = true});
  scheduler.add({.id = 1, .prompt = {7}, .max_tokens = 9}, {});
  Sequence& host = scheduler.add({.id = 2, .prompt = {8}, .max_tokens = 9, .logprobs = 1}, {});
  CHECK(planned(scheduler).size() == 2);
  CHECK(planned(scheduler).size() == 1);
  scheduler.append(*scheduler.find(1), 5);
  scheduler.append(host, 6);
  const auto rows = planned(scheduler);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].tokens == Ids{plan::kDrawn});
  CHECK(rows[1].tokens == Ids{6});
  CHECK(rows[1].wants_logits);
}

TEST_CASE("scheduler: only positions of known tokens are reused when a row that went on is over") {
  Scheduler scheduler(
      {.pages = 40, .page_tokens = 4, .max_context = 100, .depth = 4, .draws = true});
  Sequence& sequence = scheduler.add({.id = 1, .prompt = {1, 2, 3}, .max_tokens = 50}, {});
  for (int i = 0; i < 4; ++i) planned(scheduler);  // positions 0 to 5, tokens 3 to 6 unknown
  scheduler.append(sequence, 4);
  scheduler.append(sequence, 5);  // known: 1 2 3 4 5
  CHECK(sequence.computed == 6);
  scheduler.remove(1);
  CHECK(scheduler.is_consistent());
  CHECK(scheduler.counts().pages.referenced == 0);
  scheduler.add({.id = 2, .prompt = {1, 2, 3, 4, 5, 6, 7, 8}, .max_tokens = 1}, {});
  const auto rows = planned(scheduler);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].start == 5);
  CHECK(scheduler.rows()[0].cached_tokens == 5);
}

TEST_CASE("scheduler: a paused row waits for all its drawn tokens, then resumes with them") {
  Scheduler scheduler({.pages = 6,
                       .page_tokens = 2,
                       .max_context = 12,
                       .depth = 3,
                       .draws = true,
                       .admit_answer_tokens = 1});
  Sequence& old = scheduler.add({.id = 1, .prompt = {1, 2, 3}, .max_tokens = 9}, {});
  Sequence& young = scheduler.add({.id = 2, .prompt = {4, 5, 6}, .max_tokens = 9}, {});
  while (young.running || !young.started) REQUIRE_FALSE(planned(scheduler).empty());
  CHECK(scheduler.counts().paused == 1);
  REQUIRE(young.unknown > 0);
  const uint32_t unknown = young.unknown;
  while (!planned(scheduler).empty()) {
  }
  for (uint32_t left = old.unknown; left > 0; --left) scheduler.append(old, 50);
  scheduler.remove(1);
  CHECK(planned(scheduler).empty());  // nothing of the young one while tokens of it are unknown
  for (uint32_t i = 1; i < unknown; ++i) scheduler.append(young, 60);
  CHECK(planned(scheduler).empty());
  scheduler.append(young, 61);
  const auto rows = planned(scheduler);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].tokens.back() != plan::kDrawn);
  CHECK(scheduler.is_consistent());
}
