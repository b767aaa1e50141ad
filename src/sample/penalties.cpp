#include "sample/penalties.h"

#include <algorithm>
#include <array>

namespace tandem::sample {
namespace {

bool repeats(const gen::Penalty& penalty) { return penalty.value != 0 && penalty.value != 1; }

size_t index(gen::TokenId id) { return static_cast<size_t>(id); }

/// Penalties that follow each other with the same context; those that are off change nothing.
struct Pass {
  uint32_t context = 0;
  float repetition = 1;
  float presence = 0;
  float frequency = 0;
};

class Passes {
 public:
  /// The pass that a penalty of this context joins.
  Pass& of(uint32_t context) {
    if (size_ == 0 || passes_[size_ - 1].context != context) {
      passes_[size_++] = Pass{.context = context};
    }
    return passes_[size_ - 1];
  }
  std::span<const Pass> all() const { return {passes_.data(), size_}; }

 private:
  std::array<Pass, 3> passes_;
  size_t size_ = 0;
};

void run(const Pass& pass, const TokenCounts& counts, std::span<float> row) {
  for (const gen::TokenId id : counts.present()) {
    float logit = row[index(id)];
    logit = logit < 0 ? logit * pass.repetition : logit / pass.repetition;
    logit -= pass.presence;
    row[index(id)] = logit - pass.frequency * static_cast<float>(counts.count(id));
  }
}

}  // namespace

void TokenCounts::follow(std::span<const gen::TokenId> history, size_t vocab) {
  const bool goes_on = end_ > 0 && history.size() >= end_ && history[end_ - 1] == last_;
  if (!goes_on || counts_.size() != vocab) {
    forget();
    counts_.resize(vocab);
    places_.resize(vocab);
  }
  const size_t begin = context_ != 0 && history.size() > context_ ? history.size() - context_ : 0;
  if (begin >= end_) {  // nothing of what was counted stays
    forget();
    end_ = begin;
  } else {
    for (; begin_ < begin; ++begin_) remove(history[begin_]);
  }
  begin_ = begin;
  for (; end_ < history.size(); ++end_) add(history[end_]);
  if (end_ > 0) last_ = history[end_ - 1];
}

void TokenCounts::forget() {
  for (const gen::TokenId id : present_) counts_[index(id)] = 0;
  present_.clear();
  begin_ = 0;
  end_ = 0;
}

void TokenCounts::add(gen::TokenId id) {
  if (!is_known(id) || counts_[index(id)]++ > 0) return;
  places_[index(id)] = static_cast<uint32_t>(present_.size());
  present_.push_back(id);
}

void TokenCounts::remove(gen::TokenId id) {
  if (!is_known(id) || --counts_[index(id)] > 0) return;
  const gen::TokenId moved = present_.back();
  present_[places_[index(id)]] = moved;
  places_[index(moved)] = places_[index(id)];
  present_.pop_back();
}

const TokenCounts& PenaltyMemory::counts(uint32_t context,
                                         std::span<const gen::TokenId> history,
                                         size_t vocab) {
  auto found = std::find_if(all_.begin(), all_.end(), [context](const TokenCounts& counts) {
    return counts.context() == context;
  });
  if (found == all_.end()) found = all_.insert(all_.end(), TokenCounts(context));
  found->follow(history, vocab);
  return *found;
}

bool has_penalties(const gen::Sampling& sampling) {
  return !sampling.logit_bias.empty() || repeats(sampling.repetition) ||
         sampling.presence.value != 0 || sampling.frequency.value != 0;
}

void apply_penalties(std::span<float> row,
                     const gen::Sampling& sampling,
                     std::span<const gen::TokenId> history,
                     PenaltyMemory& memory) {
  for (const gen::LogitBias& bias : sampling.logit_bias) {
    if (bias.id >= 0 && index(bias.id) < row.size()) row[index(bias.id)] += bias.bias;
  }
  Passes passes;
  if (repeats(sampling.repetition)) {
    passes.of(sampling.repetition.context).repetition = sampling.repetition.value;
  }
  if (sampling.presence.value != 0) {
    passes.of(sampling.presence.context).presence = sampling.presence.value;
  }
  if (sampling.frequency.value != 0) {
    passes.of(sampling.frequency.context).frequency = sampling.frequency.value;
  }
  for (const Pass& pass : passes.all()) {
    run(pass, memory.counts(pass.context, history, row.size()), row);
  }
}

}  // namespace tandem::sample
