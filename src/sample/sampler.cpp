#include "sample/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sample/philox.h"
#include "sample/row_math.h"

namespace tandem::sample {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

DrawKey key_of(const DrawInput& input) {
  return {.seed = input.sampling.seed,
          .choice = input.sampling.choice,
          .position = static_cast<uint32_t>(input.history.size())};
}

/// A random point of [0, total), below total even when the product rounds up.
double target_of(const DrawInput& input, double total) {
  const double target = uniform(key_of(input), Purpose::kToken) * total;
  return std::min(target, std::nextafter(total, 0.0));
}

/// Index of the first running sum above the target.
size_t pick(const std::vector<double>& sums, double target) {
  return static_cast<size_t>(std::upper_bound(sums.begin(), sums.end(), target) - sums.begin());
}

/// Why nothing can be drawn.
Error no_logit(const DrawInput& input) {
  const bool had_some = std::ranges::any_of(input.logits, [](float x) { return x > kNoLogit; });
  return {.code = ErrorCode::kInternal,
          .message = had_some ? std::string("[sample] every token is banned: stop ids before "
                                            "min_tokens, by logit_bias, or by the grammar")
                              : std::string(kNoFiniteLogit)};
}

}  // namespace

/// The row that is drawn from, with its maxima.
std::span<const float> Sampler::prepare(const DrawInput& input) {
  const bool changes = !input.banned.empty() || has_penalties(input.sampling);
  if (!changes) {
    maxima_.read(input.logits);
    if (maxima_.max() <= kLargest) return input.logits;
  }
  row_.assign(input.logits.begin(), input.logits.end());
  for (const gen::TokenId id : input.banned) {
    if (id >= 0 && static_cast<size_t>(id) < row_.size()) row_[static_cast<size_t>(id)] = kNoLogit;
  }
  PenaltyMemory forgotten;
  apply_penalties(row_, input.sampling, input.history,
                  input.penalties != nullptr ? *input.penalties : forgotten);
  maxima_.read(row_);
  if (maxima_.max() > kLargest) {
    for (float& logit : row_) logit = logit > kLargest ? kLargest : logit;
    maxima_.read(row_);
  }
  return row_;
}

/// The row without what is not allowed, with its maxima.
void Sampler::keep_allowed(std::span<const float> row, std::span<const uint32_t> allowed) {
  constexpr size_t kBits = 32;
  if (row.data() != row_.data()) row_.assign(row.begin(), row.end());
  for (size_t begin = 0; begin < row_.size(); begin += kBits) {
    const size_t word = begin / kBits;
    const uint32_t bits = word < allowed.size() ? allowed[word] : 0;
    if (bits == ~0U) continue;
    const size_t end = std::min(row_.size(), begin + kBits);
    for (size_t i = begin; i < end; ++i) {
      if ((bits >> (i - begin) & 1U) == 0) row_[i] = kNoLogit;
    }
  }
  maxima_.read(row_);
}

Result<gen::Token> Sampler::draw(const DrawInput& input) {
  std::span<const float> row = prepare(input);
  if (!(maxima_.max() > kNoLogit)) return no_logit(input);
  gen::Token token;
  double norm = 0;
  if (input.logprobs) {
    const float max = maxima_.max();
    norm = double{max} + std::log(exp_sum(row, max, 1, nullptr));
    token.top = likeliest(row, norm, *input.logprobs);
  }
  if (!input.allowed.empty()) {
    keep_allowed(row, input.allowed);
    row = row_;
    if (!(maxima_.max() > kNoLogit)) return no_logit(input);
  }
  token.id = choose(row, input);
  if (input.logprobs) {
    token.logprob = static_cast<float>(double{row[static_cast<size_t>(token.id)]} - norm);
  }
  return token;
}

gen::TokenId Sampler::choose(std::span<const float> row, const DrawInput& input) {
  if (!(input.sampling.temperature > 0)) {
    return static_cast<gen::TokenId>(maxima_.find(row, maxima_.max()));
  }
  return Filters::any(input.sampling, row.size()) ? draw_filtered(row, input)
                                                  : draw_any(row, input);
}

gen::TokenId Sampler::draw_filtered(std::span<const float> row, const DrawInput& input) {
  const gen::Sampling& sampling = input.sampling;
  const bool xtc = sampling.xtc_probability > 0 &&
                   uniform(key_of(input), Purpose::kXtc) <= double{sampling.xtc_probability};
  const std::span<const Candidate> kept = filters_.keep(row, maxima_, sampling, xtc);
  float top = kNoLogit;
  for (const Candidate& at : kept) top = std::max(top, at.logit);
  sums_.clear();
  double total = 0;
  for (const Candidate& at : kept) {
    total += std::exp((double{at.logit} - double{top}) / double{sampling.temperature});
    sums_.push_back(total);
  }
  return kept[pick(sums_, target_of(input, total))].id;
}

gen::TokenId Sampler::draw_any(std::span<const float> row, const DrawInput& input) {
  const float max = maxima_.max();
  constexpr size_t kBlock = 1024;
  const float scale = std::min(1 / input.sampling.temperature, kLargest);
  sums_.clear();
  double total = 0;
  for (size_t begin = 0; begin < row.size(); begin += kBlock) {
    total += exp_sum(row.subspan(begin, std::min(kBlock, row.size() - begin)), max, scale, nullptr);
    sums_.push_back(total);
  }
  const double target = target_of(input, total);
  const size_t block = pick(sums_, target);
  const auto part = row.subspan(block * kBlock, std::min(kBlock, row.size() - block * kBlock));
  std::array<float, kBlock> weights{};
  exp_sum(part, max, scale, weights.data());
  double sum = block == 0 ? 0 : sums_[block - 1];
  size_t chosen = 0;
  for (size_t i = 0; i < part.size(); ++i) {
    if (weights[i] == 0) continue;
    chosen = i;  // rounding may leave the target past the last one: take that
    sum += double{weights[i]};
    if (sum > target) break;
  }
  return static_cast<gen::TokenId>(block * kBlock + chosen);
}

std::vector<gen::TokenLogprob> Sampler::likeliest(std::span<const float> row,
                                                  double norm,
                                                  uint32_t count) {
  top_.clear();
  const auto is_full = [&] { return top_.size() == count; };
  // Of tokens that are equally likely the first stays, so that only a larger logit counts.
  const auto wants = [&](float logit) {
    return logit > kNoLogit && (!is_full() || logit > top_.front().logit);
  };
  const auto add = [&](size_t i) {
    if (!wants(row[i])) return;
    if (is_full()) {
      std::pop_heap(top_.begin(), top_.end(), likelier);
      top_.pop_back();
    }
    top_.push_back({static_cast<gen::TokenId>(i), row[i]});
    std::push_heap(top_.begin(), top_.end(), likelier);
  };
  if (count > 0) maxima_.for_each(row, wants, add);
  std::sort_heap(top_.begin(), top_.end(), likelier);
  std::vector<gen::TokenLogprob> result;
  for (const Candidate& at : top_) {
    result.push_back({at.id, static_cast<float>(double{at.logit} - norm)});
  }
  return result;
}

}  // namespace tandem::sample
