// Embeddings beside mlx-lm's hidden states (make_embeddings.py), through the engine.
#include <cmath>

#include "base/clock.h"
#include "engine/core.h"
#include "golden_files.h"
#include "runner/model_runner.h"

namespace tandem {
namespace {

std::vector<float> golden_embedding(const std::string& name,
                                    tensor::Path path,
                                    uint32_t step_tokens,
                                    const Tokens& prompt,
                                    gen::Pooling pooling) {
  auto checkpoint = format::open_checkpoint(checkpoints_folder / name);
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  const bool has_states = name.starts_with("qwen3_5");
  auto runner = runner::ModelRunner::load(*checkpoint, {.path = path,
                                                        .kv_type = runner::KvType::kF32,
                                                        .threads = 2,
                                                        .page_tokens = 8,
                                                        .pages = 64,
                                                        .state_slots = has_states ? 8U : 0U,
                                                        .state_step = has_states ? 8U : 0U,
                                                        .frees_windows = false});
  REQUIRE_MESSAGE(runner.has_value(), runner.error().message);
  ManualClock clock;
  engine::Core core(**runner, clock, {.schedule = {.step_tokens = step_tokens}});
  REQUIRE(core.reset(1).has_value());
  std::vector<float> out;
  core.submit({.id = 1, .prompt = prompt, .pooling = pooling}, [&](const gen::Event& event) {
    if (const auto* embedding = std::get_if<gen::Embedding>(&event.body)) out = embedding->values;
  });
  while (!core.empty()) core.step();
  return out;
}

TEST_CASE(
    "embeddings: means and last hidden states are the reference's, on both paths, in chunks") {
  for (const std::string name : {"gemma3_text-f32", "llama-g32", "qwen3_5-g32"}) {
    if (!name.starts_with(only_checkpoints)) continue;
    CAPTURE(name);
    const Golden golden("../embeddings/" + name);
    const float tolerance = tolerance_of(name.ends_with("f32") ? "f32" : "g32");
    for (const auto path : {tensor::Path::kFast, tensor::Path::kPlain})
      for (const uint32_t step_tokens : {16U, 512U})
        for (const gen::Pooling pooling : {gen::Pooling::kMean, gen::Pooling::kLast}) {
          const bool is_mean = pooling == gen::Pooling::kMean;
          const Logits want = golden.logits(is_mean ? "mean" : "last");
          const auto got =
              golden_embedding(name, path, step_tokens, golden.tokens("tokens"), pooling);
          REQUIRE(got.size() == want.size());
          for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - want[i]) <= tolerance);
        }
  }
}

}  // namespace
}  // namespace tandem
