#include "engine/fake_runner.h"

namespace tandem::engine {
namespace {

uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

uint64_t absorb(uint64_t state, uint64_t value) { return (state ^ value) * 0x100000001B3ULL + 1; }

std::vector<float> spread(uint64_t state, uint32_t vocab) {
  std::vector<float> logits(vocab);
  const uint64_t key = mix(state);
  for (uint32_t id = 0; id < vocab; ++id) {
    const auto bits = static_cast<float>(mix(key ^ id) >> 40);  // 24 bits
    logits[id] = bits * (12.0F / 16777216.0F) - 6.0F;
  }
  return logits;
}

}  // namespace

std::vector<float> fake_logits(std::span<const plan::TokenId> history, uint32_t vocab) {
  uint64_t state = 0;
  for (const plan::TokenId token : history) state = absorb(state, static_cast<uint32_t>(token));
  return spread(state, vocab);
}

std::vector<float> fake_logits(std::span<const FakePosition> history, uint32_t vocab) {
  return spread(fake_state(0, history), vocab);
}

std::vector<float> fake_hidden(std::span<const FakePosition> history, uint32_t hidden) {
  return spread(~fake_state(0, history), hidden);
}

uint64_t fake_state(uint64_t before, std::span<const FakePosition> positions) {
  for (const FakePosition& at : positions) {
    const uint64_t is_step = at.numeric_class == plan::NumericClass::kStep ? 1ULL << 40 : 0;
    before = absorb(before, static_cast<uint32_t>(at.token) | is_step);
  }
  return before;
}

}  // namespace tandem::engine
