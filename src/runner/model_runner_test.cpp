#include "runner/model_runner.h"

#include <doctest/doctest.h>

#include <map>

#include "model/random_checkpoint_test.h"
#include "runner/plans_test.h"
#include "runner/warm_up.h"
#include "tensor/evaluator.h"

namespace tandem::runner {
namespace {

using model::RandomCheckpoint;
using model::RandomOptions;

std::unique_ptr<ModelRunner> load(const RandomOptions& o,
                                  tensor::Path path,
                                  uint32_t page_tokens = 4,
                                  KvType kv_type = KvType::kAuto) {
  auto runner = ModelRunner::load(
      std::make_shared<RandomCheckpoint>(o),
      {.path = path, .kv_type = kv_type, .threads = 2, .page_tokens = page_tokens, .pages = 96});
  REQUIRE(runner.has_value());
  REQUIRE((*runner)->reset(0).has_value());
  return std::move(runner).value();
}

Logits run(ModelRunner& runner, const plan::StepPlan& plan) {
  const Status issued = runner.issue(plan);
  REQUIRE(issued.has_value());
  auto result = runner.complete();
  REQUIRE(result.has_value());
  CHECK(result->sequence == plan.sequence);
  return to_vector(result->logits);
}

/// Logits after each position of `tokens`, one token a step, alone.
std::vector<Logits> solo(const RandomOptions& o,
                         tensor::Path path,
                         const Tokens& tokens,
                         uint32_t page_tokens,
                         KvType kv_type = KvType::kAuto) {
  const auto runner = load(o, path, page_tokens, kv_type);
  std::vector<Logits> out;
  for (const auto& plan : chunked_plans(tokens, 1, 96, page_tokens))
    out.push_back(run(*runner, plan));
  return out;
}

/// Runs histories together in random chunks and compares each row's logits with its solo run, bit
/// for bit.
void check_batched_is_solo(const RandomOptions& o,
                           uint64_t seed,
                           float tolerance,
                           tensor::Path path,
                           KvType kv_type = KvType::kAuto) {
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const uint32_t page_tokens = seed % 2 == 0 ? 4 : 8;
  std::vector<History> histories;
  std::vector<std::vector<Logits>> expected;
  for (uint64_t i = 0; i < 4; ++i) {
    histories.push_back(
        {.id = i + 1, .tokens = random_tokens(3 + random() % 40, o.vocab, seed * 10 + i)});
    expected.push_back(solo(o, path, histories.back().tokens, page_tokens, kv_type));
  }
  Pages pool(96, page_tokens, seed);
  const auto runner = load(o, path, page_tokens, kv_type);
  for (uint64_t sequence = 0;;) {
    plan::StepPlan plan{.sequence = sequence};
    std::vector<std::pair<size_t, size_t>> ends;
    for (size_t i = 0; i < histories.size(); ++i) {
      if (histories[i].done == histories[i].tokens.size() || random() % 4 == 0) continue;
      plan.rows.push_back(histories[i].next(random() % 3 == 0 ? 1 : 1 + random() % 17, pool, true));
      ends.emplace_back(i, histories[i].done - 1);
    }
    if (std::ranges::all_of(histories,
                            [](const History& h) { return h.done == h.tokens.size(); }) &&
        ends.empty())
      break;
    if (ends.empty()) continue;
    ++sequence;
    const Logits got = run(*runner, plan);
    REQUIRE(got.size() == ends.size() * o.vocab);
    for (size_t r = 0; r < ends.size(); ++r) {
      const Logits row(got.begin() + static_cast<ptrdiff_t>(r * o.vocab),
                       got.begin() + static_cast<ptrdiff_t>((r + 1) * o.vocab));
      const Logits& want = expected[ends[r].first][ends[r].second];
      if (tolerance == 0)
        CHECK(row == want);
      else
        CHECK(largest_difference(row, want) <= tolerance);
    }
  }
}

const std::vector<RandomOptions> kModels = {
    {.model_type = "llama"},
    {.model_type = "llama", .heads = 9, .kv_heads = 3, .has_biases = true, .bits = 4},
    {.model_type = "qwen2", .heads = 7, .kv_heads = 1, .has_tied_head = false, .bits = 8},
    {.model_type = "qwen3", .heads = 10, .kv_heads = 2},
    {.model_type = "mistral", .bits = 4, .window = 5},
    {.model_type = "qwen3_moe", .bits = 4},
    {.model_type = "gpt_oss", .bits = 4, .mode = format::QuantMode::kMxfp4, .window = 5},
    {.model_type = "longcat_flash", .bits = 4},
    {.model_type = "mimo_v2_flash", .bits = 4, .window = 5},
};

TEST_CASE("batched, chunked and solo logits are equal bit for bit on the fast path") {
  for (const RandomOptions& o : kModels) {
    CAPTURE(o.model_type);
    for (uint64_t seed = 1; seed <= 3; ++seed)
      for (const KvType type : {KvType::kF32, KvType::kF16})
        check_batched_is_solo(o, seed, 0, tensor::Path::kFast, type);
  }
}

TEST_CASE("batched and chunked logits are near the solo ones on the plain path") {
  for (const RandomOptions& o : kModels) check_batched_is_solo(o, 1, 2e-4F, tensor::Path::kPlain);
}

TEST_CASE("keys and values of float16 take half the memory and change logits little") {
  for (const RandomOptions& o : kModels) {
    CAPTURE(o.model_type);
    const auto fine = load(o, tensor::Path::kFast, 4, KvType::kF32);
    const auto half = load(o, tensor::Path::kFast, 4, KvType::kF16);
    CHECK(2 * half->cache_bytes() == fine->cache_bytes());
    for (const auto& plan : chunked_plans(random_tokens(37, o.vocab, 5), 9, 96, 4)) {
      const Logits want = run(*fine, plan);
      const float difference = largest_difference(want, run(*half, plan));
      const float greatest = largest_difference(want, Logits(want.size()));
      CHECK(difference > 0);
      // Four roundings to float16, eight where a layer attends twice.
      CHECK(difference <= (o.model_type == "longcat_flash" ? 0x1p-8F : 0x1p-9F) * greatest);
    }
  }
}

TEST_CASE("the fast path agrees with the plain one") {
  for (const RandomOptions& o : kModels) {
    CAPTURE(o.model_type);
    const Tokens tokens = random_tokens(37, o.vocab, 5);
    const auto fast = load(o, tensor::Path::kFast);
    const auto plain = load(o, tensor::Path::kPlain);
    for (const auto& plan : chunked_plans(tokens, 9, 96, 4))
      CHECK(largest_difference(run(*fast, plan), run(*plain, plan)) <= 2e-4F);
  }
}

TEST_CASE(
    "a copied page serves another request, and later writes to the copy leave the original alone") {
  for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
    const RandomOptions o;
    const Tokens tokens = random_tokens(8, o.vocab, 3);
    Tokens other(tokens.begin(), tokens.begin() + 6);
    other.push_back(1);
    const auto expected = solo(o, path, tokens, 4);
    const auto expected_other = solo(o, path, other, 4);
    const auto runner = load(o, path);
    const auto row = [](uint64_t id, uint32_t start, Tokens t, std::vector<plan::PageId> pages) {
      return plan::Row{.request = id,
                       .start = start,
                       .tokens = std::move(t),
                       .pages = std::move(pages),
                       .wants_logits = true};
    };
    run(*runner,
        {.sequence = 0, .rows = {row(1, 0, Tokens(tokens.begin(), tokens.begin() + 6), {5, 9})}});
    const Logits forked =
        run(*runner, {.sequence = 1, .copies = {{9, 2}}, .rows = {row(2, 6, {1}, {5, 2})}});
    const Logits original = run(*runner, {.sequence = 2, .rows = {row(1, 6, {tokens[6]}, {5, 9})}});
    CHECK(largest_difference(forked, expected_other[6]) <= 1e-5F);
    CHECK(largest_difference(original, expected[6]) <= 1e-5F);
  }
}

TEST_CASE("a warmed-up runner gives the same results, also when it has little room") {
  const plan::StepPlan plan{
      .rows = {{.request = 1, .tokens = {1, 2, 3}, .pages = {3}, .wants_logits = true}}};
  for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
    const Logits cold = run(*load({}, path), plan);
    const auto runner = load({}, path);
    REQUIRE(warm_up(*runner).has_value());
    REQUIRE(runner->reset(0).has_value());
    CHECK(run(*runner, plan) == cold);
  }
}

TEST_CASE("a step of copies alone runs") {
  for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain})
    CHECK(run(*load({}, path), {.sequence = 0, .copies = {{1, 2}}}).empty());
}

TEST_CASE("plans that do not fit are refused and change nothing") {
  const auto runner = load({}, tensor::Path::kFast);
  const plan::Row good{.request = 1, .tokens = {1, 2, 3}, .pages = {0}, .wants_logits = true};
  const auto refused = [&](plan::StepPlan plan) {
    const Status status = runner->issue(plan);
    CHECK_FALSE(status.has_value());
    if (!status) CHECK(status.error().code == ErrorCode::kInvalid);
  };
  const auto changed = [&](auto change) {
    plan::StepPlan plan{.rows = {good}};
    change(plan);
    return plan;
  };
  refused(changed([](auto& p) { p.epoch = 1; }));
  refused(changed([](auto& p) { p.sequence = 1; }));
  refused(changed([](auto& p) { p.rows[0].tokens.clear(); }));
  refused(changed([](auto& p) { p.rows[0].tokens[1] = 101; }));
  refused(changed([](auto& p) { p.rows[0].tokens[1] = -1; }));
  refused(changed([](auto& p) { p.rows[0].pages[0] = 96; }));
  refused(changed([](auto& p) { p.rows[0].start = 2; }));
  refused(changed([](auto& p) { p.rows[0].start = UINT32_MAX; }));
  refused(changed([](auto& p) { p.rows.push_back(p.rows[0]); }));
  refused(changed([](auto& p) { p.copies.push_back({0, 96}); }));
  refused(changed([](auto& p) { p.copies.push_back({5, 5}); }));
  refused(changed([](auto& p) {
    p.rows.push_back(p.rows[0]);
    p.rows[0].numeric_class = plan::NumericClass::kStep;
    p.rows[1].request = 2;
  }));
  refused({});
  CHECK(run(*runner, {.rows = {good}}).size() == 101);
}

TEST_CASE("the state hash tells a tampered page table and repeats for a repeated plan") {
  const auto hash_of = [](const plan::StepPlan& plan) {
    const auto runner = load({}, tensor::Path::kFast);
    REQUIRE(runner->issue(plan).has_value());
    return runner->complete()->state_hash;
  };
  const plan::StepPlan plan{
      .rows = {{.request = 1, .tokens = {1, 2, 3, 4, 5}, .pages = {3, 7}, .wants_logits = true}}};
  plan::StepPlan tampered = plan;
  tampered.rows[0].pages[1] = 8;
  CHECK(hash_of(plan) == hash_of(plan));
  CHECK(hash_of(plan) != hash_of(tampered));
}

TEST_CASE("one flipped bit of a weight changes the logits") {
  const plan::StepPlan plan{
      .rows = {{.request = 1, .tokens = {1, 2, 3}, .pages = {3}, .wants_logits = true}}};
  for (const int bits : {0, 4}) {
    const Logits whole = run(*load({.bits = bits}, tensor::Path::kFast), plan);
    for (const char* name :
         {"model.layers.1.mlp.down_proj.weight", "model.layers.0.self_attn.q_proj.weight"})
      CHECK(run(*load({.bits = bits, .flipped = name}, tensor::Path::kFast), plan) != whole);
  }
}

TEST_CASE("after reset an epoch starts at step 0 with the same results") {
  const auto runner = load({}, tensor::Path::kFast);
  plan::StepPlan plan{
      .rows = {{.request = 1, .tokens = {1, 2, 3}, .pages = {3}, .wants_logits = true}}};
  const Logits first = run(*runner, plan);
  runner->abort();
  CHECK(runner->issue({.sequence = 1}).error().code == ErrorCode::kPeerLost);
  REQUIRE(runner->reset(4).has_value());
  plan.epoch = 4;
  CHECK(run(*runner, plan) == first);
}

TEST_CASE("pages come from the limit, and a limit below the weights is refused with both numbers") {
  const RandomOptions o{.hidden = 256, .mlp = 512, .vocab = 2000};
  const auto checkpoint = std::make_shared<RandomCheckpoint>(o);
  const uint64_t weights = checkpoint->weight_bytes();
  const auto with_limit = [&](uint64_t limit) {
    return ModelRunner::load(checkpoint,
                             {.page_tokens = 16, .memory_limit = limit, .max_step_tokens = 64});
  };
  const auto small = with_limit(weights / 2);
  REQUIRE_FALSE(small.has_value());
  CHECK(small.error().code == ErrorCode::kTooLarge);
  const auto large = with_limit(weights + (16U << 20));
  REQUIRE(large.has_value());
  CHECK((*large)->info().pages >= 16);
  CHECK((*large)->weight_bytes() + (*large)->cache_bytes() <= weights + (16U << 20));
}

TEST_CASE("the steps of a pipeline on the CPU are shorter and more in flight than other ones") {
  const auto checkpoint = std::make_shared<RandomCheckpoint>(RandomOptions{});
  const auto info_of = [&](ModelOptions options) {
    options.pages = 64;
    const auto runner = ModelRunner::load(checkpoint, options);
    REQUIRE(runner.has_value());
    return (*runner)->info();
  };
  using topology::Split;
  const auto pipeline = info_of({.split = Split::kPipeline, .ranks = 2});
  CHECK(pipeline.depth == 2);
  CHECK(pipeline.step_tokens == kStageStepTokens);
  const auto set = info_of({.split = Split::kPipeline, .ranks = 2, .max_step_tokens = 64});
  CHECK(set.step_tokens == 64);
  const auto lone = info_of({.split = Split::kPipeline});
  CHECK(lone.depth == 1);
  for (const auto& other : {lone, info_of({}), info_of({.split = Split::kTensor, .ranks = 2})})
    CHECK(other.step_tokens == plan::kStepTokens);
}

TEST_CASE("an unknown model_type is refused by name, with what is supported") {
  const auto runner = ModelRunner::load(
      std::make_shared<RandomCheckpoint>(RandomOptions{.model_type = "gpt2"}), {.pages = 8});
  REQUIRE_FALSE(runner.has_value());
  CHECK(runner.error().code == ErrorCode::kUnsupported);
  CHECK(runner.error().message.find("gpt2") != std::string::npos);
  CHECK(runner.error().message.find(", qwen2, qwen2_moe, qwen3, ") != std::string::npos);
}

TEST_CASE("a config that does not say whether the head is tied is settled by the tensors") {
  for (const bool is_tied : {true, false}) {
    const RandomOptions o = {.has_tied_head = is_tied};
    const auto silent = std::make_shared<RandomCheckpoint>(o);
    silent->forget("tie_word_embeddings");
    const auto runner = ModelRunner::load(silent, {.threads = 2, .page_tokens = 4, .pages = 96});
    REQUIRE(runner.has_value());
    const plan::StepPlan plan{
        .rows = {{.request = 1, .tokens = {1, 2}, .pages = {3}, .wants_logits = true}}};
    CHECK(run(**runner, plan) == run(*load(o, tensor::Path::kFast), plan));
  }
}

TEST_CASE("a tensor that the model does not use, or lacks, is named") {
  const auto stray = std::make_shared<RandomCheckpoint>(RandomOptions{});
  stray->add_stray("model.layers.0.self_attn.sinks");
  const auto with_stray = ModelRunner::load(stray, {.pages = 8});
  REQUIRE_FALSE(with_stray.has_value());
  CHECK(with_stray.error().message.find("self_attn.sinks") != std::string::npos);
  const auto lacking = std::make_shared<RandomCheckpoint>(RandomOptions{});
  lacking->remove("model.layers.1.mlp.up_proj.weight");
  const auto without = ModelRunner::load(lacking, {.pages = 8});
  REQUIRE_FALSE(without.has_value());
  CHECK(without.error().message.find("layers.1.mlp.up_proj.weight") != std::string::npos);
}

TEST_CASE("a step of the fast path holds no operation of MLX's own") {
  for (const RandomOptions& o :
       {RandomOptions{}, RandomOptions{.has_tied_head = false, .has_biases = true, .bits = 4},
        RandomOptions{.model_type = "qwen2", .has_biases = true},
        RandomOptions{.model_type = "qwen3", .bits = 8},
        RandomOptions{.model_type = "mistral", .window = 5},
        RandomOptions{.model_type = "qwen3_moe", .bits = 8},
        RandomOptions{.model_type = "longcat_flash", .bits = 4},
        RandomOptions{.model_type = "mimo_v2_flash", .bits = 4, .window = 5}}) {
    CAPTURE(o.model_type);
    const auto runner = load(o, tensor::Path::kFast);
    const uint64_t before = tensor::stock_nodes();
    for (const auto& plan : chunked_plans(random_tokens(100, o.vocab, 1), 7, 96, 4))
      run(*runner, plan);
    CHECK(tensor::stock_nodes() == before);
  }
}

/// Three epochs of the same tokens: steps of 5, the same again, and single ones.
void check_replay(const RandomOptions& o) {
  std::chrono::nanoseconds in_kernels{0};
  auto runner =
      ModelRunner::load(std::make_shared<RandomCheckpoint>(o),
                        {.threads = 2, .page_tokens = 4, .pages = 96, .kernel_time = &in_kernels});
  REQUIRE(runner.has_value());
  const Tokens tokens = random_tokens(90, o.vocab, 3);
  std::vector<Logits> first;
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    REQUIRE((*runner)->reset(epoch).has_value());
    size_t at = 0;
    for (plan::StepPlan plan : chunked_plans(tokens, epoch == 2 ? 1 : 5, 96, 4)) {
      plan.epoch = epoch;
      const Logits logits = run(**runner, plan);
      at += plan.rows[0].tokens.size();
      if (epoch == 0) first.push_back(logits);
      if (at % 5 == 0) CHECK(logits == first[at / 5 - 1]);
    }
    if (epoch == 0) CHECK(in_kernels.count() > 0);  // all steps but the first
  }
}

TEST_CASE("steps of a known shape run from a tape; their logits are those of the first time") {
  check_replay({.bits = 4});
}

TEST_CASE("a replayed step takes the experts of its own tokens") {
  check_replay({.model_type = "qwen3_moe"});
}

}  // namespace
}  // namespace tandem::runner
