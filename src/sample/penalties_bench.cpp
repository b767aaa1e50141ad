// What penalties cost a draw, by the length of the history: all three, over all or some of it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "sample/penalties.h"

namespace {

using namespace tandem;

/// Ids as text has them: the k-th likeliest about 1/k as often as the first.
std::vector<gen::TokenId> text_like(size_t length, uint32_t vocab) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, std::log(vocab));
  std::vector<gen::TokenId> out(length);
  for (auto& id : out) id = static_cast<gen::TokenId>(std::exp(uniform(random))) - 1;
  return out;
}

double median_us(size_t length, uint32_t vocab, uint32_t context) {
  using Clock = std::chrono::steady_clock;
  gen::Sampling sampling;
  sampling.repetition = {.value = 1.1F, .context = context};
  sampling.presence = {.value = 0.5F, .context = context};
  sampling.frequency = {.value = 0.1F, .context = context};
  const auto history = text_like(length + 200, vocab);
  const std::vector<float> logits(vocab, 1.0F);
  sample::PenaltyMemory memory;
  std::vector<double> times;
  for (size_t i = 0; i < 200; ++i) {
    std::vector<float> row = logits;
    const auto begin = Clock::now();
    sample::apply_penalties(row, sampling, std::span(history).first(length + i), memory);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + 100, times.end());
  return times[100];
}

}  // namespace

int main() {
  for (const uint32_t vocab : {49152U, 151936U}) {
    for (const size_t length : {1000U, 10'000U, 100'000U}) {
      std::printf("vocabulary %6u, history %6zu: %7.1f us a draw over all, %7.1f over 64\n", vocab,
                  length, median_us(length, vocab, 0), median_us(length, vocab, 64));
    }
  }
}
