#include "topology/split_choice.h"

#include <fmt/format.h>

#include <vector>

namespace tandem::topology {
namespace {

bool is_idle(const Part& part) { return part.heads.empty() || part.mlp.empty(); }

/// A rank whose part of a tensor split is next to nothing though it asked for more.
bool some_rank_idles(const SplitQuestion& q, const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const bool has_share = q.shares.empty() || q.shares[part.rank] > 0;
    if (has_share && is_idle(part)) return true;
  }
  return false;
}

uint32_t kv_heads_held(const std::vector<Part>& parts) {
  uint32_t held = 0;
  for (const Part& part : parts) held += part.kv_heads.size();
  return held;
}

SplitChoice pipeline(std::string reason) { return {Split::kPipeline, std::move(reason)}; }
SplitChoice tensor(std::string reason) { return {Split::kTensor, std::move(reason)}; }

}  // namespace

const char* name(Split split) { return split == Split::kTensor ? "tensor" : "pipeline"; }

SplitChoice choose_split(const SplitQuestion& q) {
  if (q.ranks <= 1) return tensor("one rank holds the whole model");
  if (q.shape.layers < q.ranks) {
    return tensor(fmt::format("{} layers are too few for {} stages", q.shape.layers, q.ranks));
  }
  const auto parts = place(q.shape, Split::kTensor, q.ranks, q.shares);
  if (!parts) return tensor("neither split fits: " + parts.error().message);
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
