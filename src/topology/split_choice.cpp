#include "topology/split_choice.h"

#include <fmt/format.h>

#include <vector>

namespace tandem::topology {
namespace {

bool is_idle(const Part& part, const ModelShape& shape) {
  return heads_of(shape, part, false).heads.empty() || heads_of(shape, part, true).heads.empty() ||
         part.mlp.empty() || (shape.expert_mlp > 0 && part.expert_mlp.empty());
}

/// A rank whose part of a tensor split is next to nothing though it asked for more.
bool some_rank_idles(const SplitQuestion& q, const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const bool has_share = q.shares.empty() || q.shares[part.rank] > 0;
    if (has_share && is_idle(part, q.shape)) return true;
  }
  return false;
}

uint32_t kv_heads_held(const std::vector<Part>& parts) {
  uint32_t held = 0;
  for (const Part& part : parts) held += part.kv_heads.size();
  return held;
}

/// Tokens a second of a tensor split over those of one rank on one core, when reading the weights
/// is all that takes time: a core reads about 10 GB/s, and a sum over ranks of one host takes 7 us
/// while both run, more when one has to wait for its core.
double expected_gain(const SplitQuestion& q) {
  constexpr double kBytesPerSecond = 10e9, kSecondsPerSum = 30e-6;
  const double alone = static_cast<double>(q.weight_bytes) / kBytesPerSecond;
  return alone / (alone / q.ranks + 2 * q.shape.layers * kSecondsPerSum);
}

bool is_too_small(const SplitQuestion& q) {
  if (q.link != Link::kHost || !q.shares.empty() || q.weight_bytes == 0) return false;
  return expected_gain(q) < 1 + (q.ranks - 1) / 2.0;
}

SplitChoice pipeline(std::string reason) { return {Split::kPipeline, std::move(reason)}; }
SplitChoice tensor(std::string reason) { return {Split::kTensor, std::move(reason)}; }

}  // namespace

const char* name(Split split) { return split == Split::kTensor ? "tensor" : "pipeline"; }

SplitChoice choose_split(const SplitQuestion& q) {
  if (q.ranks <= 1) return tensor("one rank holds the whole model");
  if (is_too_small(q)) {
    SplitChoice choice = tensor(
        fmt::format("with {} MiB of weights the {} sums that a token needs would cost more than {} "
                    "ranks gain",
                    q.weight_bytes >> 20, 2 * q.shape.layers, q.ranks));
    choice.alone = true;
    return choice;
  }
  if (q.shape.layers < q.ranks) {
    return tensor(fmt::format("{} layers are too few for {} stages", q.shape.layers, q.ranks));
  }
  const auto parts = place(q.shape, Split::kTensor, q.ranks, q.shares);
  if (!parts) return tensor("neither split fits: " + parts.error().message);
  if (const auto stages = place(q.shape, Split::kPipeline, q.ranks, q.shares); !stages)
    return tensor(stages.error().message);
  if (some_rank_idles(q, *parts)) {
    return pipeline(
        fmt::format("{} heads cannot be cut into {} parts of some use", q.shape.heads, q.ranks));
  }
  if (q.link == Link::kNetwork) {
    return pipeline(
        fmt::format("over a network the {} sums that a token needs in a tensor split "
                    "cost more than {} hand-overs",
                    2 * q.shape.layers, q.ranks - 1));
  }
  const uint32_t held = kv_heads_held(*parts);
  if (held > 2 * q.shape.kv_heads) {
    return pipeline(
        fmt::format("a tensor split would hold {} copies of {} KV heads", held, q.shape.kv_heads));
  }
  return tensor("every rank can work on every token");
}

}  // namespace tandem::topology
