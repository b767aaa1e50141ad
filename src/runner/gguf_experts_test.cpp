// A GGUF file of a model with experts, from file to logits.
#include "model/random_checkpoint_test.h"
#include "runner/gguf_test.h"
#include "runner/plans_test.h"

namespace tandem::runner {
namespace {

const model::RandomOptions kWithExperts = {
    .model_type = "qwen3_moe", .layers = 2, .dense_layer = 2, .has_tied_head = false};

/// The same tensors as a GGUF file.
std::shared_ptr<const format::Checkpoint> as_gguf(const format::Checkpoint& from) {
  format::GgufWriter writer;
  writer.text("general.architecture", "qwen3moe");
  const auto& config = from.config();
  using Names = std::initializer_list<std::pair<const char*, const char*>>;
  for (const auto& [key, name] : Names{{"block_count", "num_hidden_layers"},
                                       {"embedding_length", "hidden_size"},
                                       {"feed_forward_length", "intermediate_size"},
                                       {"attention.head_count", "num_attention_heads"},
                                       {"attention.head_count_kv", "num_key_value_heads"},
                                       {"attention.key_length", "head_dim"},
                                       {"context_length", "max_position_embeddings"},
                                       {"expert_count", "num_experts"},
                                       {"expert_used_count", "num_experts_per_tok"},
                                       {"expert_feed_forward_length", "moe_intermediate_size"}}) {
    writer.number(std::string("qwen3moe.") + key, config.at(name).get<uint32_t>());
  }
  write_tensors(writer, "qwen3moe", from,
                gguf_names({"token_embd.weight", "output_norm.weight", "output.weight"},
                           {"attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm",
                            "attn_k_norm", "attn_norm", "ffn_norm", "ffn_gate_inp", "ffn_gate_exps",
                            "ffn_up_exps", "ffn_down_exps"}));
  return reopened(writer);
}

Logits logits_of(std::shared_ptr<const format::Checkpoint> checkpoint) {
  auto runner =
      ModelRunner::load(std::move(checkpoint), {.threads = 1, .page_tokens = 16, .pages = 16});
  REQUIRE_MESSAGE(runner.has_value(), runner.error().message);
  REQUIRE((*runner)->reset(0).has_value());
  const Tokens tokens = random_tokens(20, kWithExperts.vocab, 3);
  REQUIRE((*runner)->issue(chunked_plans(tokens, tokens.size(), 16, 16).at(0)).has_value());
  const auto result = (*runner)->complete();
  REQUIRE(result);
  return to_vector(result->logits);
}

TEST_CASE("a GGUF file with experts gives the logits of the same model as safetensors") {
  const auto model = std::make_shared<model::RandomCheckpoint>(kWithExperts);
  CHECK(logits_of(as_gguf(*model)) == logits_of(model));
}

}  // namespace
}  // namespace tandem::runner
