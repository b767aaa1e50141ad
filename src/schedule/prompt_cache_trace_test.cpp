#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "schedule/scheduler.h"

using namespace tandem;
using namespace tandem::schedule;

namespace {

/// Computes a prompt and ends; returns how many of its tokens were reused.
uint32_t run_prompt(Scheduler& scheduler, const std::vector<TokenId>& prompt) {
  scheduler.add({.id = 1, .prompt = prompt, .max_tokens = 1}, {});
  REQUIRE(scheduler.next({}) != nullptr);
  scheduler.returned();
  const uint32_t cached = scheduler.rows().front().cached_tokens;
  scheduler.remove(1);
  return cached;
}

}  // namespace

TEST_CASE("prompt cache trace: at least the reference's reuse, never the whole prompt") {
  std::ifstream in(TANDEM_SOURCE_DIR "/tests/vectors/golden_prompt_cache.json");
  REQUIRE(in);
  int compared = 0;
  for (const auto& trace : nlohmann::json::parse(in)) {
    if (!trace["trimmable"].get<bool>()) continue;  // its caches cannot be cut, pages can
    std::vector<std::vector<TokenId>> stored;
    for (const auto& step : trace["steps"]) {
      const auto& op = step["op"];
      if (op[0] == "trim") break;
      const auto tokens = op[1].get<std::vector<TokenId>>();
      if (op[0] == "put") {
        stored.push_back(tokens);
        continue;
      }
      CAPTURE(step.dump());
      Scheduler scheduler({.pages = 64, .page_tokens = 1, .max_context = 64});
      for (const auto& prompt : stored) run_prompt(scheduler, prompt);
      const uint32_t cached = run_prompt(scheduler, tokens);
      const auto last = static_cast<uint32_t>(tokens.size()) - 1;
      const uint32_t reference = step["offset"].is_null() ? 0 : step["offset"].get<uint32_t>();
      CHECK(cached >= std::min(reference, last));
      CHECK(cached <= last);
      ++compared;
    }
  }
  CHECK(compared >= 8);
}
