// Tables of architectures: what becomes of names and tensors. Whole models of each are compared
// with logits in tests/golden.
#include "format/gguf/architecture.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "format/testdata/memory_checkpoint.h"

namespace tandem::format {
namespace {

using Floats = std::vector<float>;

constexpr const char* kLinear = "model.layers.0.linear_attn.";

/// Two key heads of two numbers, each with three value heads of four numbers.
nlohmann::json six_heads() {
  return {{"linear_num_key_heads", 2},
          {"linear_num_value_heads", 6},
          {"linear_key_head_dim", 2},
          {"quantization", {{"bits", 4}, {"group_size", 32}}}};
}

Floats counted(size_t count) {
  Floats out(count);
  std::iota(out.begin(), out.end(), 1.0F);
  return out;
}

std::shared_ptr<const Checkpoint> converted(std::shared_ptr<MemoryCheckpoint> checkpoint,
                                            const char* architecture) {
  const auto table = find_gguf_architecture(architecture);
  REQUIRE(table);
  auto out = converted_from_gguf(std::move(checkpoint), *table);
  REQUIRE_MESSAGE(out.has_value(), out.error().message);
  return *out;
}

Floats floats_of(const Checkpoint& checkpoint, const std::string& name) {
  const auto tensor = checkpoint.tensor(name);
  REQUIRE_MESSAGE(tensor.has_value(), tensor.error().message);
  CHECK(tensor->dtype == Dtype::kF32);
  return elements_of<float>(*tensor);
}

TEST_CASE("gguf: names are those of the architecture") {
  const auto name = [](const char* architecture, const char* tensor) {
    return hugging_face_name(tensor, *find_gguf_architecture(architecture));
  };
  CHECK(name("llama", "blk.3.ffn_up.weight") == "model.layers.3.mlp.up_proj.weight");
  CHECK(name("llama", "blk.3.ffn_norm.weight") == "model.layers.3.post_attention_layernorm.weight");
  CHECK(name("gemma3", "blk.3.ffn_norm.weight") ==
        "model.layers.3.pre_feedforward_layernorm.weight");
  CHECK(name("gpt-oss", "blk.0.attn_sinks.weight") == "model.layers.0.self_attn.sinks");
  CHECK(name("qwen35", "blk.12.ssm_a") == "model.layers.12.linear_attn.A_log");
  CHECK(name("qwen35", "blk.1.ssm_dt.bias") == "model.layers.1.linear_attn.dt_bias");
  CHECK(name("lfm2", "token_embd_norm.weight") == "model.embedding_norm.weight");
  CHECK(name("glm4moe", "blk.47.nextn.eh_proj.weight") == "model.layers.47.eh_proj.weight");
  for (const char* unknown :
       {"blk.0.ssm_a", "blk.0", "blk.x.attn_q.weight", "attn_q.weight", "blk.0.attn_q.scale",
        "blk.-1.attn_q.weight", "v.blk.0.attn_q.weight"})
    CHECK(name("llama", unknown) == "");
}

TEST_CASE("gguf: norms that hold a 1 lose it, whatever they are stored in") {
  auto stored = std::make_shared<MemoryCheckpoint>(nlohmann::json::object());
  stored->put("model.norm.weight", Dtype::kF32, {3}, Floats{1.25F, 0.5F, 2});
  stored->put("model.layers.0.input_layernorm.weight", Dtype::kF16, {1},
              std::vector<uint16_t>{0x4000});
  stored->put("model.layers.0.mlp.up_proj.weight", Dtype::kF32, {1, 1}, Floats{1});
  const auto shown = converted(stored, "gemma2");
  CHECK(floats_of(*shown, "model.norm.weight") == Floats{0.25F, -0.5F, 1});
  CHECK(floats_of(*shown, "model.layers.0.input_layernorm.weight") == Floats{1});
  CHECK(floats_of(*shown, "model.layers.0.mlp.up_proj.weight") == Floats{1});
}

TEST_CASE("gguf: value heads lie with their key head again, in rows and in columns") {
  const std::string linear = kLinear;
  auto stored = std::make_shared<MemoryCheckpoint>(six_heads());
  // A row is named by its value head as models order them: the first of each key head is stored
  // before the second of each.
  const Floats order = {0, 3, 1, 4, 2, 5};
  Floats z, qkv = {-1, -2, -3, -4, -5, -6, -7, -8};
  for (const float head : order) z.insert(z.end(), 4, head);
  qkv.insert(qkv.end(), z.begin(), z.end());
  stored->put(linear + "in_proj_z.weight", Dtype::kF32, {24, 1}, z);
  stored->put(linear + "in_proj_qkv.weight", Dtype::kF32, {32, 1}, qkv);
  stored->put(linear + "in_proj_b.weight", Dtype::kF32, {6, 1}, order);
  stored->put(linear + "dt_bias", Dtype::kF32, {6}, order);
  stored->put(linear + "conv1d.weight", Dtype::kF32, {32, 1}, qkv);
  stored->put(linear + "out_proj.weight", Dtype::kF32, {1, 24}, z);
  Floats decays;
  for (const float head : order) decays.push_back(-std::exp(head));
  stored->put(linear + "A_log", Dtype::kF32, {6}, decays);
  const auto shown = converted(stored, "qwen35");
  Floats in_order, heads = {0, 1, 2, 3, 4, 5};
  for (const float head : heads) in_order.insert(in_order.end(), 4, head);
  Floats after_keys(qkv.begin(), qkv.begin() + 8);
  after_keys.insert(after_keys.end(), in_order.begin(), in_order.end());
  CHECK(floats_of(*shown, linear + "in_proj_z.weight") == in_order);
  CHECK(floats_of(*shown, linear + "in_proj_qkv.weight") == after_keys);
  CHECK(floats_of(*shown, linear + "in_proj_b.weight") == heads);
  CHECK(floats_of(*shown, linear + "dt_bias") == heads);
  CHECK(floats_of(*shown, linear + "conv1d.weight") == after_keys);
  CHECK(shown->describe(linear + "conv1d.weight")->shape == std::vector<int64_t>{32, 1, 1});
  CHECK(floats_of(*shown, linear + "out_proj.weight") == in_order);
  const Floats logarithms = floats_of(*shown, linear + "A_log");
  for (size_t i = 0; i < 6; ++i) CHECK(logarithms[i] == doctest::Approx(heads[i]));
  const auto some = shown->tensor(linear + "in_proj_z.weight", RowRange{7, 13});
  REQUIRE(some);
  CHECK(elements_of<float>(*some) == Floats{1, 2, 2, 2, 2, 3});
}

TEST_CASE("gguf: codes, scales and biases of a matrix go the same way") {
  const std::string out = std::string(kLinear) + "out_proj.";
  auto stored = std::make_shared<MemoryCheckpoint>(six_heads());
  std::vector<uint32_t> codes;  // six heads of 32 inputs: four words and a scale each
  for (const uint32_t head : {0U, 3U, 1U, 4U, 2U, 5U})
    for (uint32_t word = 0; word < 4; ++word) codes.push_back(10 * head + word);
  stored->put(out + "weight", Dtype::kU32, {1, 24}, codes);
  stored->put(out + "scales", Dtype::kF32, {1, 6}, Floats{0, 3, 1, 4, 2, 5});
  stored->put(out + "biases", Dtype::kF32, {1, 6}, Floats{0, -3, -1, -4, -2, -5});
  const auto shown = converted(stored, "qwen35");
  std::vector<uint32_t> want;
  for (uint32_t head = 0; head < 6; ++head)
    for (uint32_t word = 0; word < 4; ++word) want.push_back(10 * head + word);
  CHECK(elements_of<uint32_t>(*shown->tensor(out + "weight")) == want);
  CHECK(floats_of(*shown, out + "scales") == Floats{0, 1, 2, 3, 4, 5});
  CHECK(floats_of(*shown, out + "biases") == Floats{0, -1, -2, -3, -4, -5});
  CHECK((*shown->quantization(out.substr(0, out.size() - 1)))->bits == 4);
}

TEST_CASE("gguf: heads that groups of a quantization go through are refused by name") {
  auto stored = std::make_shared<MemoryCheckpoint>(six_heads());
  stored->put(std::string(kLinear) + "out_proj.scales", Dtype::kF32, {1, 3}, Floats{1, 2, 3});
  const auto shown = converted_from_gguf(stored, *find_gguf_architecture("qwen35"));
  REQUIRE_FALSE(shown);
  CHECK(shown.error().message.find("out_proj.scales") != std::string::npos);
}

TEST_CASE("gguf: b and a of qwen3next, which lie together, become two modules") {
  const std::string linear = kLinear;
  auto stored = std::make_shared<MemoryCheckpoint>(six_heads());
  stored->put(linear + "in_proj_ba.weight", Dtype::kU32, {12, 1},
              std::vector<uint32_t>{0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15});
  stored->put(linear + "in_proj_ba.scales", Dtype::kF32, {12, 1}, counted(12));
  const auto shown = converted(stored, "qwen3next");
  const std::vector<uint32_t> b = {0, 1, 2, 3, 4, 5}, a = {10, 11, 12, 13, 14, 15};
  CHECK(elements_of<uint32_t>(*shown->tensor(linear + "in_proj_b.weight")) == b);
  CHECK(elements_of<uint32_t>(*shown->tensor(linear + "in_proj_a.weight")) == a);
  CHECK(floats_of(*shown, linear + "in_proj_a.scales") == Floats{4, 5, 6, 10, 11, 12});
  CHECK((*shown->quantization(linear + "in_proj_a"))->group_size == 32);
  CHECK_FALSE(shown->has(linear + "in_proj_ba.weight"));
}

TEST_CASE("gguf: gate and up of all experts in one tensor are taken apart") {
  const std::string block = "model.layers.0.mlp.switch_mlp.";
  auto stored = std::make_shared<MemoryCheckpoint>(six_heads());
  stored->put(block + "gate_up_proj.weight", Dtype::kF32, {2, 4, 2}, counted(16));
  const auto shown = converted(stored, "qwen3moe");
  CHECK(floats_of(*shown, block + "gate_proj.weight") == Floats{1, 2, 3, 4, 9, 10, 11, 12});
  const auto second = shown->tensor(block + "up_proj.weight", RowRange{1, 2});
  REQUIRE(second);
  CHECK(second->shape == std::vector<int64_t>{1, 2, 2});
  CHECK(elements_of<float>(*second) == Floats{13, 14, 15, 16});
  CHECK_FALSE(shown->has(block + "gate_up_proj.weight"));
}

TEST_CASE("gguf: taps get their axis, and the gate of a shared expert its row") {
  auto stored = std::make_shared<MemoryCheckpoint>(six_heads());
  stored->put("model.layers.0.conv.conv.weight", Dtype::kF32, {4, 3}, counted(12));
  CHECK(converted(stored, "lfm2")->tensor("model.layers.0.conv.conv.weight")->shape ==
        std::vector<int64_t>{4, 3, 1});
  const std::string gate = "model.layers.0.mlp.shared_expert_gate.weight";
  auto flat = std::make_shared<MemoryCheckpoint>(six_heads());
  flat->put(gate, Dtype::kF32, {5}, counted(5));
  const auto row = converted(flat, "qwen2moe")->tensor(gate, RowRange{0, 1});
  REQUIRE(row);
  CHECK(row->shape == std::vector<int64_t>{1, 5});
  CHECK(elements_of<float>(*row) == counted(5));
}

}  // namespace
}  // namespace tandem::format
