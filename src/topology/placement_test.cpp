#include "topology/placement.h"

#include <doctest/doctest.h>

#include <array>
#include <numeric>

namespace tandem::topology {
namespace {

struct Heads {
  uint32_t heads, kv_heads;
};
constexpr std::array kHeads = {Heads{4, 2}, Heads{9, 3}, Heads{10, 2}, Heads{7, 1}};

ModelShape shape_of(Heads h, uint32_t head_dim, uint32_t group) {
  return {.layers = 6,
          .heads = h.heads,
          .kv_heads = h.kv_heads,
          .head_dim = head_dim,
          .mlp = 192,
          .vocab = 321,
          .channels = 320,
          .quant_group = group};
}

void check_covers(const std::vector<Part>& parts,
                  Range Part::* range,
                  uint32_t total,
                  uint32_t unit) {
  uint32_t at = 0;
  for (const Part& p : parts) {
    CHECK((p.*range).begin == at);
    CHECK((p.*range).end >= at);
    at = (p.*range).end;
    CHECK((at % unit == 0 || at == total));
  }
  CHECK(at == total);
}

std::vector<std::vector<double>> some_shares(uint32_t ranks) {
  std::vector<std::vector<double>> out = {{}};
  std::vector<double> rising, first_only(ranks, 0.0), last_only(ranks, 0.0), uneven;
  for (uint32_t r = 0; r < ranks; ++r) {
    rising.push_back(r + 1.0);
    uneven.push_back(r % 2 == 0 ? 0.7 : 0.1);
  }
  first_only.front() = 1;
  last_only.back() = 1;
  out.insert(out.end(), {rising, first_only, last_only, uneven});
  return out;
}

TEST_CASE("heads are cut where what they have read fills quantization groups") {
  ModelShape shape = shape_of({8, 4}, 48, 64);
  shape.value_dim = 32;
  shape.window = {.heads = 8, .kv_heads = 8, .head_dim = 32, .value_dim = 16};
  const auto parts = place(shape, Split::kTensor, 3);
  REQUIRE(parts.has_value());
  for (const Part& part : *parts) {
    CHECK(part.heads.begin % 2 == 0);
    CHECK(part.window_heads.begin % 4 == 0);
    CHECK(heads_of(shape, part, false).whole.values() == 32);
    CHECK(heads_of(shape, part, true).whole.values() == 16);
  }
  CHECK((*parts)[0].heads == Range{0, 2});
}

TEST_CASE("tensor parts cover every head, column and row once, cut at quantization groups") {
  for (const Heads h : kHeads)
    for (const uint32_t head_dim : {16U, 32U, 64U})
      for (const uint32_t group : {1U, 32U, 64U})
        for (uint32_t ranks = 1; ranks <= 5; ++ranks)
          for (const auto& shares : some_shares(ranks)) {
            CAPTURE(h.heads);
            CAPTURE(ranks);
            ModelShape shape = shape_of(h, head_dim, group);
            shape.channel_unit = head_dim == 16 ? 1 : 80;
            const auto parts = place(shape, Split::kTensor, ranks, shares);
            REQUIRE(parts.has_value());
            REQUIRE(parts->size() == ranks);
            check_covers(*parts, &Part::vocab, shape.vocab, 1);
            check_covers(*parts, &Part::mlp, shape.mlp, group);
            check_covers(*parts, &Part::channels, shape.channels,
                         std::lcm(shape.channel_unit, group));
            check_covers(*parts, &Part::heads, shape.heads, 1);
            for (const Part& p : *parts) {
              const bool aligned =
                  p.heads.end == shape.heads || p.heads.end * head_dim % group == 0;
              CHECK(aligned);
              CHECK(p.layers == Range{0, shape.layers});
            }
          }
}

TEST_CASE("a rank holds exactly the KV heads that its query heads attend to") {
  for (const Heads h : kHeads)
    for (uint32_t ranks = 1; ranks <= 5; ++ranks)
      for (const auto& shares : some_shares(ranks)) {
        const ModelShape shape = shape_of(h, 32, 1);
        const auto parts = place(shape, Split::kTensor, ranks, shares);
        REQUIRE(parts.has_value());
        for (const Part& p : *parts) {
          const auto map = kv_of_head(heads_of(shape, p, false));
          REQUIRE(map.size() == p.heads.size());
          CHECK(p.heads.empty() == p.kv_heads.empty());
          for (uint32_t i = 0; i < map.size(); ++i)
            CHECK(p.kv_heads.begin + map[i] == (p.heads.begin + i) / (h.heads / h.kv_heads));
          if (!map.empty()) {
            CHECK(map.front() == 0);
            CHECK(map.back() + 1 == p.kv_heads.size());
          }
        }
      }
}

TEST_CASE("equal shares differ by at most one unit") {
  for (const Heads h : kHeads)
    for (uint32_t ranks = 1; ranks <= 5; ++ranks) {
      const auto parts = place(shape_of(h, 32, 32), Split::kTensor, ranks);
      REQUIRE(parts.has_value());
      for (const Part& a : *parts)
        for (const Part& b : *parts) {
          CHECK(a.heads.size() <= b.heads.size() + 1);
          CHECK(a.mlp.size() <= b.mlp.size() + 32);
        }
    }
}

TEST_CASE(
    "pipeline stages cover the layers from the last rank to the first, each with one at least") {
  for (uint32_t layers = 1; layers <= 9; ++layers)
    for (uint32_t ranks = 1; ranks <= 5; ++ranks)
      for (const auto& shares : some_shares(ranks)) {
        ModelShape shape = shape_of(kHeads[0], 32, 1);
        shape.layers = layers;
        const auto parts = place(shape, Split::kPipeline, ranks, shares);
        if (layers < ranks) {
          CHECK(parts.error().code == ErrorCode::kInvalid);
          continue;
        }
        REQUIRE(parts.has_value());
        uint32_t at = 0;
        for (uint32_t r = ranks; r-- > 0;) {
          const Part& p = (*parts)[r];
          CHECK(p.layers.begin == at);
          CHECK(p.layers.size() >= 1);
          at = p.layers.end;
          CHECK(p.channels == Range{0, shape.channels});
          CHECK(p.has_head == (r == 0));
          CHECK(p.has_embedding == (r + 1 == ranks));
        }
        CHECK(at == layers);
      }
}

TEST_CASE("layers that see a window have heads of their own, cut by their own width") {
  ModelShape shape = shape_of({4, 2}, 64, 64);
  shape.window = {.heads = 12, .kv_heads = 6, .head_dim = 32};
  const auto parts = place(shape, Split::kTensor, 4);
  REQUIRE(parts.has_value());
  check_covers(*parts, &Part::heads, 4, 1);
  check_covers(*parts, &Part::window_heads, 12, 2);
  for (const Part& p : *parts) {
    const HeadPart all = heads_of(shape, p, false), window = heads_of(shape, p, true);
    CHECK(all.whole == HeadShape{4, 2, 64});
    CHECK(all.heads == p.heads);
    CHECK(window.whole == shape.window);
    CHECK(window.heads == p.window_heads);
    CHECK(window.kv_heads == Range{window.heads.begin / 2, (window.heads.end + 1) / 2});
    CHECK(kv_of_head(window).size() == window.heads.size());
  }
  CHECK((*place(shape, Split::kPipeline, 2))[0].window_kv_heads == Range{0, 6});
  shape.window.kv_heads = 5;
  CHECK(place(shape, Split::kTensor, 2).error().message.find("12 query heads") !=
        std::string::npos);
}

TEST_CASE("layers without heads of their own for windows have those of the others") {
  const ModelShape shape = shape_of({4, 2}, 64, 1);
  const Part part = (*place(shape, Split::kTensor, 3))[1];
  CHECK(heads_of(shape, part, true).whole == HeadShape{4, 2, 64});
  CHECK(heads_of(shape, part, true).heads == part.heads);
}

TEST_CASE("no cut of a pipeline separates layers that share keys and values") {
  for (uint32_t ranks = 1; ranks <= 5; ++ranks)
    for (const auto& shares : some_shares(ranks)) {
      ModelShape shape = shape_of(kHeads[0], 32, 1);
      shape.layers = 9;
      shape.joined_layers = 6;
      const auto parts = place(shape, Split::kPipeline, ranks, shares);
      if (ranks > 4) {
        CHECK(parts.error().message.find("at most 4 stages") != std::string::npos);
        continue;
      }
      REQUIRE(parts.has_value());
      uint32_t at = 0;
      for (uint32_t r = ranks; r-- > 0;) {
        CHECK((*parts)[r].layers.begin == at);
        CHECK((*parts)[r].layers.size() >= 1);
        at = (*parts)[r].layers.end;
      }
      CHECK(at == 9);
      CHECK((*parts)[0].layers.begin <= 3);
    }
}

TEST_CASE("shares decide how much a rank gets") {
  const std::array<double, 2> shares = {3, 1};
  ModelShape shape = shape_of(kHeads[0], 32, 1);
  shape.layers = 8;
  CHECK((*place(shape, Split::kTensor, 2, shares))[0].heads == Range{0, 3});
  CHECK((*place(shape, Split::kPipeline, 2, shares))[0].layers == Range{2, 8});
}

TEST_CASE("shares and heads that do not fit are refused") {
  const ModelShape shape = shape_of(kHeads[0], 32, 1);
  const std::array<double, 2> negative = {1, -1}, zero = {0, 0};
  CHECK(place(shape, Split::kTensor, 0).error().code == ErrorCode::kInvalid);
  CHECK(place(shape, Split::kTensor, 3, negative).error().code == ErrorCode::kInvalid);
  CHECK(place(shape, Split::kTensor, 2, negative).error().code == ErrorCode::kInvalid);
  CHECK(place(shape, Split::kTensor, 2, zero).error().code == ErrorCode::kInvalid);
  CHECK(place(shape_of({7, 2}, 32, 1), Split::kTensor, 2).error().code == ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tandem::topology
