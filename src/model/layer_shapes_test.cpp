#include <doctest/doctest.h>

#include "model/arch.h"

namespace tandem::model {
namespace {

/// Keeps as many floats as heads of this rank have dimensions.
struct SummingLayer {
  SummingLayer(const Config&, const tensor::Weights&, uint32_t) {}
  static uint32_t state_floats(const Config& c, const topology::Part& part) {
    return part.heads.size() * c.head_dim;
  }
  tensor::array operator()(const tensor::array& x, kv::Layer*, const tensor::Step&) const {
    return x;
  }
};

TEST_CASE("a rank's layers keep pages of all positions or of a window, or a state, as they are") {
  const Arch arch = decoder<SummingLayer>("sums", decode_llama_config);
  Description model{arch, {}};
  model.config.layers = 4;
  model.config.heads = model.config.kv_heads = 4;
  model.config.head_dim = 8;
  model.config.windows = {0, 16, 0, 32};
  model.config.is_recurrent = {false, false, true, false};
  CHECK(widest_window(model.config) == 32);
  const auto parts = topology::place(model.config.shape(), topology::Split::kTensor, 2, {});
  REQUIRE(parts.has_value());
  for (const bool frees_windows : {false, true}) {
    const auto shapes = layer_shapes(model, (*parts)[0], frees_windows);
    REQUIRE(shapes.size() == 4);
    const auto group = frees_windows ? tensor::PageGroup::kWindow : tensor::PageGroup::kAll;
    CHECK(shapes[0].group == tensor::PageGroup::kAll);
    CHECK(shapes[1].group == group);
    CHECK(shapes[3].group == group);
    for (const size_t i : {0U, 1U, 3U}) {
      CHECK(shapes[i].kv_heads == 2);
      CHECK(shapes[i].head_dim == 8);
      CHECK(shapes[i].state_floats == 0);
    }
    CHECK(shapes[2].kv_heads == 0);
    CHECK(shapes[2].state_floats == 16);
  }
}

TEST_CASE("layers of a window keep their own heads' keys, and layers that read others' keep none") {
  Description model{decoder<SummingLayer>("sums", decode_llama_config), {}};
  model.config.layers = 4;
  model.config.heads = model.config.kv_heads = 2;
  model.config.head_dim = 64;
  model.config.window_heads = {.heads = 4, .kv_heads = 4, .head_dim = 16};
  model.config.windows = {0, 16, 16, 0};
  model.config.kv_sources = {0, 1, 1, 0};
  const auto parts = topology::place(model.config.shape(), topology::Split::kTensor, 2, {});
  REQUIRE(parts.has_value());
  const auto shapes = layer_shapes(model, (*parts)[1], true);
  CHECK(shapes[0].kv_heads == 1);
  CHECK(shapes[0].head_dim == 64);
  CHECK(shapes[1].kv_heads == 2);
  CHECK(shapes[1].head_dim == 16);
  CHECK(shapes[2].kv_heads == 0);
  CHECK(shapes[2].source == 1);
  CHECK(shapes[3].source == 0);
}

TEST_CASE("a layer that is an MLP alone keeps nothing") {
  Description model{decoder<SummingLayer>("sums", decode_llama_config), {}};
  model.config.layers = 2;
  model.config.heads = model.config.kv_heads = 2;
  model.config.head_dim = 8;
  model.config.windows = {0, 0};
  model.config.is_mlp = {true, false};
  const auto parts = topology::place(model.config.shape(), topology::Split::kTensor, 1, {});
  REQUIRE(parts.has_value());
  const auto shapes = layer_shapes(model, (*parts)[0], true);
  CHECK(shapes[0].kv_heads == 0);
  CHECK(shapes[0].page_bytes(4, 4) + shapes[0].slot_bytes() == 0);
  CHECK(shapes[1].kv_heads == 2);
}

TEST_CASE("values have the width of their layer's kind, and an attention keeps its own") {
  Description model{decoder<SummingLayer>("sums", decode_llama_config), {}};
  model.config.layers = 2;
  model.config.heads = model.config.kv_heads = 2;
  model.config.head_dim = 48;
  model.config.value_dim = 32;
  model.config.window_heads = {.heads = 4, .kv_heads = 4, .head_dim = 16, .value_dim = 8};
  model.config.windows = {0, 16};
  const auto parts = topology::place(model.config.shape(), topology::Split::kTensor, 1, {});
  REQUIRE(parts.has_value());
  const auto shapes = layer_shapes(model, (*parts)[0], true);
  CHECK(shapes[0].page_bytes(8, 2) == 8 * 2 * (48 + 32) * 2);
  CHECK(shapes[1].page_bytes(8, 2) == 8 * 4 * (16 + 8) * 2);
  model.config.latent.rank = 20;
  model.config.latent.rope = 4;
  model.config.attentions = 2;
  CHECK(layer_shapes(model, (*parts)[0], true)[0].page_bytes(8, 2) == 2 * 8 * 24 * 2);
}

}  // namespace
}  // namespace tandem::model
