#include "topology/split_choice.h"

#include <doctest/doctest.h>

#include <array>

namespace tandem::topology {
namespace {

constexpr ModelShape kModel = {.layers = 30,
                               .heads = 9,
                               .kv_heads = 3,
                               .head_dim = 64,
                               .mlp = 1536,
                               .vocab = 49152,
                               .quant_group = 32};

SplitChoice choose(uint32_t ranks, Link link = Link::kHost, ModelShape shape = kModel) {
  return choose_split({.shape = shape, .ranks = ranks, .link = link});
}

TEST_CASE("split choice: a tensor split on one host or a fast fabric, a pipeline over a network") {
  for (uint32_t ranks = 2; ranks <= 4; ++ranks) {
    CAPTURE(ranks);
    CHECK(choose(ranks).split == Split::kTensor);
    CHECK(choose(ranks, Link::kFabric).split == Split::kTensor);
    const SplitChoice far = choose(ranks, Link::kNetwork);
    CHECK(far.split == Split::kPipeline);
    CHECK(far.reason.find("60 sums") != std::string::npos);
  }
}

TEST_CASE("split choice: equal ranks of one host leave a model too small to gain to one of them") {
  const auto is_alone = [](uint32_t ranks, uint64_t mib, Link link = Link::kHost,
                           std::span<const double> shares = {}) {
    return choose_split({.shape = kModel,
                         .ranks = ranks,
                         .shares = shares,
                         .link = link,
                         .weight_bytes = mib << 20})
        .alone;
  };
  CHECK(is_alone(2, 93));
  CHECK(is_alone(8, 93));
  CHECK(!is_alone(2, 923));
  CHECK(!is_alone(1, 93));
  CHECK(!is_alone(2, 93, Link::kNetwork));
  constexpr std::array shares = {2.0, 1.0};  // who says shares wants ranks
  CHECK(!is_alone(2, 93, Link::kHost, shares));
  CHECK(!is_alone(2, 0));  // not known
}

TEST_CASE("split choice: one rank has nothing to cut, whatever the link") {
  for (const Link link : {Link::kHost, Link::kFabric, Link::kNetwork}) {
    CHECK(choose(1, link).split == Split::kTensor);
  }
}

TEST_CASE(
    "split choice: layers that share keys and values may leave too few stages for a pipeline") {
  ModelShape shape = kModel;
  shape.joined_layers = 28;
  CHECK(choose(3, Link::kNetwork, shape).split == Split::kPipeline);
  CHECK(choose(4, Link::kNetwork, shape).split == Split::kTensor);
  CHECK(choose(4, Link::kNetwork, shape).reason.find("at most 3 stages") != std::string::npos);
}

TEST_CASE("split choice: a rank without heads for windows alone would idle, too") {
  ModelShape shape = kModel;
  shape.window = {.heads = 2, .kv_heads = 2, .head_dim = 64};
  CHECK(choose(3, Link::kHost, shape).split == Split::kPipeline);
  CHECK(choose(2, Link::kHost, shape).split == Split::kTensor);
}

TEST_CASE("split choice: more ranks than heads make a pipeline while there are layers for it") {
  CHECK(choose(12).split == Split::kPipeline);
  CHECK(choose(12).reason.find("9 heads") != std::string::npos);
  ModelShape shallow = kModel;
  shallow.layers = 10;
  const SplitChoice only_way = choose(12, Link::kNetwork, shallow);
  CHECK(only_way.split == Split::kTensor);
  CHECK(only_way.reason.find("10 layers") != std::string::npos);
}

TEST_CASE("split choice: a rank that asked for no share may stay without heads") {
  constexpr std::array shares = {1.0, 1.0, 0.0};
  CHECK(choose_split({.shape = kModel, .ranks = 3, .shares = shares}).split == Split::kTensor);
}

TEST_CASE("split choice: copies of KV heads may double the cache, but not more") {
  ModelShape shape = kModel;
  shape.heads = 16;
  shape.kv_heads = 2;
  CHECK(choose(4, Link::kHost, shape).split == Split::kTensor);
  const SplitChoice copied = choose(5, Link::kHost, shape);
  CHECK(copied.split == Split::kPipeline);
  CHECK(copied.reason.find("of 2 KV heads") != std::string::npos);
}

TEST_CASE("split choice: what it takes can be placed") {
  for (uint32_t ranks = 1; ranks <= 40; ++ranks) {
    CAPTURE(ranks);
    for (const Link link : {Link::kHost, Link::kNetwork}) {
      CHECK(place(kModel, choose(ranks, link).split, ranks).has_value());
    }
  }
}

}  // namespace
}  // namespace tandem::topology
