// Requests of low priority beside an agent's session: titles, summaries, probes.
#include <random>

#include "schedule/driver_test.h"

using namespace tandem;
using namespace tandem::schedule;

namespace {

constexpr uint32_t kPageTokens = 16;
constexpr uint32_t kLongestSide = 400;

struct Kind {
  std::string name;
  SchedulerOptions options;
};

/// Pools that hold the session (2000 tokens) and one side request at a time, and little more.
std::vector<Kind> kinds() {
  const uint32_t pages = 2000 / kPageTokens + 2 * (kLongestSide / kPageTokens) + 8;
  return {
      {"all positions", {.pages = pages, .page_tokens = kPageTokens, .max_context = 2400}},
      {"windows",
       {.pages = pages,
        .page_tokens = kPageTokens,
        .max_context = 2400,
        .window = 64,
        .window_pages = pages + 16,
        .step_tokens = 64}},
      {"states",
       {.pages = pages,
        .page_tokens = kPageTokens,
        .max_context = 2400,
        .state_slots = 96,
        .state_step = 512}},
  };
}

/// A session that grows turn by turn, among side requests.
class Session {
 public:
  Session(const Kind& kind, uint32_t seed) : driver_(kind.options), random_(seed) {}

  /// Computes one more turn; returns how many tokens of what there was were found.
  uint32_t turn(uint32_t more) {
    for (uint32_t i = 0; i < more; ++i) tokens_.push_back(next_token_++);
    const gen::RequestId id = ++ids_;
    const uint32_t answer = 1 + draw(20);
    driver_.add(id, tokens_, answer, "agent");
    driver_.finish();
    tokens_.insert(tokens_.end(), answer, Driver::token_of(id));
    return driver_.cached[id];
  }

  /// Of other words, or of the session's beginning, or of all of it and more.
  void side_request() {
    Ids prompt;
    const uint32_t kind = draw(4);
    if (kind == 0) prompt.assign(tokens_.begin(), tokens_.begin() + draw(length()));
    if (kind == 1 && tokens_.size() < 1900) prompt = tokens_;
    const uint32_t more = 1 + draw(kLongestSide - 60);
    for (uint32_t i = 0; i < more; ++i) prompt.push_back(next_token_++);
    driver_.add(++ids_, prompt, 1 + draw(40), "agent", Priority::kLow);
    driver_.finish();
  }

  uint32_t length() const { return static_cast<uint32_t>(tokens_.size()); }
  Driver& driver() { return driver_; }

 private:
  uint32_t draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  Driver driver_;
  std::mt19937 random_;
  Ids tokens_;
  TokenId next_token_ = 1;
  gen::RequestId ids_ = 0;
};

}  // namespace

TEST_CASE("side requests: however many, the agent's session has all it computed") {
  for (const Kind& kind : kinds()) {
    for (uint32_t seed = 0; seed < 12; ++seed) {
      CAPTURE(kind.name);
      CAPTURE(seed);
      Session session(kind, seed);
      session.turn(200 + seed * 7);
      while (session.length() < 1500) {
        for (int i = 0; i < 12; ++i) session.side_request();
        const uint32_t before = session.length();
        // The last token drawn was never computed.
        REQUIRE(session.turn(40) >= before - 1);
      }
    }
  }
}

TEST_CASE("side requests: what an agent's session shares with them is not theirs any more") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    Driver driver(kind.options);
    driver.add(1, count_up(320), 1, "a", Priority::kLow);
    driver.finish();
    driver.add(2, count_up(640), 1, "a");
    driver.finish();
    CHECK(driver.cached[2] >= 304);
    for (gen::RequestId id = 3; id < 40; ++id) {
      driver.add(id, count_up(380, static_cast<TokenId>(1000 * id)), 8, "a", Priority::kLow);
      driver.finish();
    }
    driver.add(50, count_up(640), 1, "a");
    driver.finish();
    CHECK(driver.cached[50] >= 608);
  }
}
