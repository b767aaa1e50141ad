#include "topology/placement.h"

#include <cmath>
#include <numeric>

namespace tandem::topology {
namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

Result<std::vector<double>> normalized(uint32_t ranks, std::span<const double> shares) {
  if (shares.empty()) return std::vector<double>(ranks, 1.0 / ranks);
  if (shares.size() != ranks)
    return invalid(fmt::format("{} shares were given for {} ranks", shares.size(), ranks));
  double sum = 0;
  for (const double s : shares) {
    if (!(s >= 0) || !std::isfinite(s)) return invalid("a share must be a number of 0 or more");
    sum += s;
  }
  if (sum <= 0) return invalid("at least one share must be above 0");
  std::vector<double> out(shares.begin(), shares.end());
  for (double& s : out) s /= sum;
  return out;
}

/// Cuts [0, total) at multiples of `unit`, each border as near as possible to its share.
std::vector<Range> cut(uint32_t total, uint32_t unit, const std::vector<double>& shares) {
  const uint32_t units = (total + unit - 1) / unit;
  std::vector<Range> out;
  double sum = 0;
  uint32_t begin = 0;
  for (size_t r = 0; r < shares.size(); ++r) {
    sum += shares[r];
    const bool last = r + 1 == shares.size();
    const auto border = static_cast<uint32_t>(std::lround(sum * units));
    const uint32_t end = last ? total : std::min(border * unit, total);
    out.push_back({begin, std::max(begin, end)});
    begin = out.back().end;
  }
  return out;
}

/// Layers that some stage has to itself, or may have: all but those that must lie in one.
uint32_t free_layers(const ModelShape& shape) {
  return shape.layers - std::max(shape.joined_layers, 1U);
}

/// As cut(), but nobody is left without a layer, and joined ones stay together. Stage 0 of the
/// result has the first layers.
std::vector<Range> cut_layers(const ModelShape& shape, const std::vector<double>& shares) {
  auto out = cut(shape.layers, 1, shares);
  const auto stages = static_cast<uint32_t>(out.size());
  for (uint32_t i = 0; i + 1 < stages; ++i) {
    const uint32_t most = free_layers(shape) - (stages - 2 - i);
    out[i].end = std::min(std::max(out[i].end, out[i].begin + 1), most);
    out[i + 1].begin = out[i].end;
  }
  return out;
}

HeadShape shape_of(const ModelShape& shape, bool sees_window) {
  if (sees_window && shape.window.heads != 0) return shape.window;
  return {.heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim,
          .value_dim = shape.value_dim};
}

Range kv_range(const HeadShape& shape, Range heads) {
  if (heads.empty()) return {};
  const uint32_t group = shape.heads / shape.kv_heads;
  return {heads.begin / group, (heads.end - 1) / group + 1};
}

/// What heads have read is cut at groups.
std::vector<Range> cut_heads(const HeadShape& shape,
                             uint32_t group,
                             const std::vector<double>& shares) {
  return cut(shape.heads, std::lcm(shape.values(), group) / shape.values(), shares);
}

std::vector<Part> place_tensor(const ModelShape& shape, const std::vector<double>& shares) {
  const uint32_t group = std::max(shape.quant_group, 1U);
  const HeadShape all = shape_of(shape, false), window = shape_of(shape, true);
  const auto heads = cut_heads(all, group, shares), windows = cut_heads(window, group, shares);
  const auto mlp = cut(shape.mlp, group, shares);
  const auto expert_mlp = cut(shape.expert_mlp, group, shares);
  const uint32_t channel_unit = std::lcm(std::max(shape.channel_unit, 1U), group);
  const auto channels = cut(shape.channels, channel_unit, shares);
  const auto vocab = cut(shape.vocab, 1, shares);
  std::vector<Part> out;
  for (uint32_t r = 0; r < shares.size(); ++r)
    out.push_back({.split = Split::kTensor,
                   .rank = r,
                   .ranks = static_cast<uint32_t>(shares.size()),
                   .layers = {0, shape.layers},
                   .heads = heads[r],
                   .kv_heads = kv_range(all, heads[r]),
                   .window_heads = windows[r],
                   .window_kv_heads = kv_range(window, windows[r]),
                   .mlp = mlp[r],
                   .expert_mlp = expert_mlp[r],
                   .channels = channels[r],
                   .vocab = vocab[r]});
  return out;
}

std::vector<Part> place_pipeline(const ModelShape& shape, std::vector<double> shares) {
  const auto ranks = static_cast<uint32_t>(shares.size());
  const std::vector<double> by_stage(shares.rbegin(), shares.rend());
  const auto stages = cut_layers(shape, by_stage);
  const HeadShape window = shape_of(shape, true);
  std::vector<Part> out;
  for (uint32_t r = 0; r < ranks; ++r)
    out.push_back({.split = Split::kPipeline,
                   .rank = r,
                   .ranks = ranks,
                   .layers = stages[ranks - 1 - r],
                   .heads = {0, shape.heads},
                   .kv_heads = {0, shape.kv_heads},
                   .window_heads = {0, window.heads},
                   .window_kv_heads = {0, window.kv_heads},
                   .mlp = {0, shape.mlp},
                   .expert_mlp = {0, shape.expert_mlp},
                   .channels = {0, shape.channels},
                   .vocab = {0, shape.vocab},
                   .has_embedding = r + 1 == ranks,
                   .has_head = r == 0});
  return out;
}

Status check_heads(const HeadShape& shape) {
  if (shape.kv_heads != 0 && shape.head_dim != 0 && shape.heads % shape.kv_heads == 0) return {};
  return invalid(
      fmt::format("{} query heads do not share {} KV heads evenly", shape.heads, shape.kv_heads));
}

}  // namespace

Result<std::vector<Part>> place(const ModelShape& shape,
                                Split split,
                                uint32_t ranks,
                                std::span<const double> shares) {
  if (ranks == 0) return invalid("a model needs at least one rank");
  for (const bool sees_window : {false, true})
    if (Status fits = check_heads(shape_of(shape, sees_window)); !fits) return fits.error();
  const auto parts = normalized(ranks, shares);
  if (!parts) return parts.error();
  if (split == Split::kTensor) return place_tensor(shape, *parts);
  if (shape.layers < ranks)
    return invalid(fmt::format("a pipeline of {} stages needs as many layers; the model has {}",
                               ranks, shape.layers));
  if (free_layers(shape) + 1 < ranks)
    return invalid(
        fmt::format("the last {} of {} layers share keys and values and must lie in one stage: a "
                    "pipeline has at most {} stages here, not {}",
                    shape.joined_layers, shape.layers, free_layers(shape) + 1, ranks));
  return place_pipeline(shape, *parts);
}

HeadPart heads_of(const ModelShape& shape, const Part& part, bool sees_window) {
  const bool has_own = sees_window && shape.window.heads != 0;
  return {.whole = shape_of(shape, sees_window),
          .heads = has_own ? part.window_heads : part.heads,
          .kv_heads = has_own ? part.window_kv_heads : part.kv_heads};
}

std::vector<uint32_t> kv_of_head(const HeadPart& part) {
  const uint32_t group = part.whole.heads / part.whole.kv_heads;
  std::vector<uint32_t> out;
  for (uint32_t h = part.heads.begin; h < part.heads.end; ++h)
    out.push_back(h / group - part.kv_heads.begin);
  return out;
}

}  // namespace tandem::topology
