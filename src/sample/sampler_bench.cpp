// What a draw costs over a vocabulary of 151,936 tokens, by the request's settings: for logits as
// text has them (few likely tokens) and for flat ones.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "sample/sampler.h"

namespace {

using namespace tandem;

constexpr size_t kVocab = 151'936;

std::vector<float> row_of(float peak, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> row(kVocab);
  for (float& x : row) x = normal(random);
  for (int i = 0; i < 20; ++i) row[random() % kVocab] = peak - static_cast<float>(i) / 4;
  return row;
}

struct Setting {
  const char* name;
  gen::Sampling sampling;
  std::optional<uint32_t> logprobs = {};
};

double median_us(const Setting& setting, float peak) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<float>> rows;
  for (uint32_t i = 0; i < 4; ++i) rows.push_back(row_of(peak, i));
  std::vector<gen::TokenId> history(2000, 7);
  sample::Sampler sampler;
  sample::PenaltyMemory penalties;
  std::vector<double> times;
  for (size_t i = 0; i < 101; ++i) {
    const auto begin = Clock::now();
    const auto token = sampler.draw({.logits = rows[i % rows.size()],
                                     .history = history,
                                     .sampling = setting.sampling,
                                     .logprobs = setting.logprobs,
                                     .penalties = &penalties});
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    history.push_back(token ? token->id : 0);
  }
  std::nth_element(times.begin(), times.begin() + 50, times.end());
  return times[50];
}

gen::Sampling with(auto change) {
  gen::Sampling sampling;
  sampling.temperature = 0.7F;
  change(sampling);
  return sampling;
}

}  // namespace

int main() {
  const std::vector<Setting> settings = {
      {"greedy", with([](auto& s) { s.temperature = 0; })},
      {"greedy, 5 logprobs", with([](auto& s) { s.temperature = 0; }), 5},
      {"greedy, three penalties", with([](auto& s) {
         s.temperature = 0;
         s.repetition.value = 1.1F;
         s.presence.value = s.frequency.value = 0.1F;
       })},
      {"temperature", with([](auto&) {})},
      {"top_p 0.95", with([](auto& s) { s.top_p = 0.95F; })},
      {"top_k 40", with([](auto& s) { s.top_k = 40; })},
      {"min_p 0.05", with([](auto& s) { s.min_p = 0.05F; })},
      {"top_p, top_k, min_p", with([](auto& s) {
         s.top_p = 0.95F;
         s.top_k = 20;
         s.min_p = 0.01F;
       })},
      {"all of them, 20 logprobs", with([](auto& s) {
         s.top_p = 0.95F;
         s.top_k = 20;
         s.min_p = 0.01F;
         s.repetition.value = 1.1F;
       }),
       20},
  };
  for (const Setting& setting : settings)
    std::printf("%-26s %8.1f us a draw, %8.1f from flat logits\n", setting.name,
                median_us(setting, 22), median_us(setting, 13));
  return 0;
}
