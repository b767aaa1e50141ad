#include "sample/penalties.h"

#include <algorithm>

namespace tandem::sample {
namespace {

bool repeats(const gen::Penalty& penalty) { return penalty.value != 0 && penalty.value != 1; }

size_t index(gen::TokenId id) { return static_cast<size_t>(id); }

bool inside(gen::TokenId id, size_t vocab) { return id >= 0 && index(id) < vocab; }

}  // namespace

bool Penalties::any(const gen::Sampling& sampling) {
  return !sampling.logit_bias.empty() || repeats(sampling.repetition) ||
         sampling.presence.value != 0 || sampling.frequency.value != 0;
}

void Penalties::count(std::span<const gen::TokenId> history, uint32_t context, size_t vocab) {
  if (counts_.size() < vocab) counts_.resize(vocab);
  for (const gen::TokenId id : present_) counts_[index(id)] = 0;
  present_.clear();
  if (context != 0 && history.size() > context) history = history.last(context);
  for (const gen::TokenId id : history) {
    if (inside(id, vocab) && counts_[index(id)]++ == 0) present_.push_back(id);
  }
}

void Penalties::apply(std::span<float> row,
                      const gen::Sampling& sampling,
                      std::span<const gen::TokenId> history) {
  for (const gen::LogitBias& bias : sampling.logit_bias) {
    if (inside(bias.id, row.size())) row[index(bias.id)] += bias.bias;
  }
  if (repeats(sampling.repetition)) {
    count(history, sampling.repetition.context, row.size());
    for (const gen::TokenId id : present_) {
      float& logit = row[index(id)];
      logit = logit < 0 ? logit * sampling.repetition.value : logit / sampling.repetition.value;
    }
  }
  if (sampling.presence.value != 0) {
    count(history, sampling.presence.context, row.size());
    for (const gen::TokenId id : present_) row[index(id)] -= sampling.presence.value;
  }
  if (sampling.frequency.value != 0) {
    count(history, sampling.frequency.context, row.size());
    for (const gen::TokenId id : present_) {
      row[index(id)] -= sampling.frequency.value * static_cast<float>(counts_[index(id)]);
    }
  }
}

}  // namespace tandem::sample
