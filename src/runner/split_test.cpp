#include <doctest/doctest.h>

#include <array>

#include "runner/memory.h"
#include "runner/ranks_test.h"

namespace tandem::runner {
namespace {

using model::RandomOptions;

/// Two requests, prefilled in chunks together and then decoded.
std::vector<plan::StepPlan> mixed_plans(uint32_t vocab,
                                        uint32_t page_tokens,
                                        bool is_recurrent = false) {
  Pages pool(64, page_tokens, 11);
  std::array<History, 2> histories = {
      History{.id = 1, .tokens = random_tokens(21, vocab, 1), .slots = {3, 1}},
      History{.id = 2, .tokens = random_tokens(13, vocab, 2), .slots = {0, 2}}};
  std::vector<plan::StepPlan> out;
  const auto add = [&](size_t first, size_t second) {
    plan::StepPlan plan{.sequence = out.size()};
    const std::array counts = {first, second};
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      plan.rows.push_back(histories[i].next(counts[i], pool, true));
      if (is_recurrent) histories[i].carry(plan.rows.back());
    }
    out.push_back(std::move(plan));
  };
  add(9, 0);
  add(10, 7);
  add(1, 5);
  add(1, 1);
  return out;
}

void check_equals_one_rank(RanksSetup setup) {
  CAPTURE(setup.model.heads);
  CAPTURE(setup.model.kv_heads);
  CAPTURE(setup.model.bits);
  const uint32_t ranks = setup.ranks;
  CAPTURE(ranks);
  CAPTURE((setup.split == topology::Split::kPipeline));
  const auto plans = mixed_plans(setup.model.vocab, setup.page_tokens, setup.model.has_states());
  const RanksOutcome split = run_ranks(setup, plans);
  setup.ranks = 1;
  setup.shares = {};
  const RanksOutcome alone = run_ranks(setup, plans);
  for (const Error& e : split.errors) FAIL(e.message);
  REQUIRE(alone.errors.empty());
  REQUIRE(split.logits.size() == plans.size());
  const float tolerance = setup.model.bits == 0 ? 2e-4F : 5e-4F;
  for (size_t i = 0; i < plans.size(); ++i) {
    CHECK(largest_difference(split.logits[i], alone.logits[i]) <= tolerance);
    for (const auto& hashes : split.hashes) CHECK(hashes[i] == alone.hashes[0][i]);
  }
}

struct Heads {
  uint32_t heads, kv_heads;
};
constexpr std::array kHeads = {Heads{4, 2}, Heads{9, 3}, Heads{10, 2}, Heads{7, 1}};

RandomOptions model_of(Heads h, int bits) {
  return {.model_type = h.heads % 2 == 0 ? "qwen3" : "llama",
          .layers = 5,
          .heads = h.heads,
          .kv_heads = h.kv_heads,
          .has_tied_head = h.heads % 2 == 1,
          .has_biases = h.heads == 9,
          .bits = bits,
          .window = h.heads == 7 ? 6U : 0U};
}

TEST_CASE("tensor split over 2 to 5 ranks gives one rank's logits") {
  for (const Heads h : kHeads)
    for (const int bits : {0, 4})
      for (uint32_t ranks = 2; ranks <= 5; ++ranks)
        check_equals_one_rank({.model = model_of(h, bits), .ranks = ranks});
}

TEST_CASE("uneven tensor shares give one rank's logits, also for a rank that gets nothing") {
  for (const Heads h : kHeads) {
    check_equals_one_rank({.model = model_of(h, 4), .ranks = 2, .shares = {3, 1}});
    check_equals_one_rank({.model = model_of(h, 0), .ranks = 3, .shares = {1, 0, 4}});
    check_equals_one_rank({.model = model_of(h, 0), .ranks = 2, .shares = {0, 1}});
  }
}

TEST_CASE("pipelines of 2 to 5 stages give one rank's logits, with even and uneven layers") {
  for (const Heads h : kHeads)
    for (uint32_t ranks = 2; ranks <= 5; ++ranks)
      check_equals_one_rank(
          {.model = model_of(h, 4), .split = topology::Split::kPipeline, .ranks = ranks});
  check_equals_one_rank({.model = model_of(kHeads[0], 0),
                         .split = topology::Split::kPipeline,
                         .ranks = 2,
                         .shares = {1, 4}});
  check_equals_one_rank({.model = model_of(kHeads[1], 0),
                         .split = topology::Split::kPipeline,
                         .ranks = 3,
                         .shares = {5, 1, 1}});
}

TEST_CASE("experts cut inside, or whole in stages, give one rank's logits") {
  const auto model = [](int bits) {
    return RandomOptions{.model_type = "qwen3_moe",
                         .layers = 4,
                         .heads = 8,
                         .expert_mlp = 96,
                         .has_tied_head = false,
                         .bits = bits};
  };
  for (const int bits : {0, 4})
    for (uint32_t ranks = 2; ranks <= 4; ++ranks)
      for (const auto split : {topology::Split::kTensor, topology::Split::kPipeline})
        check_equals_one_rank({.model = model(bits), .split = split, .ranks = ranks});
  check_equals_one_rank({.model = model(4), .ranks = 3, .shares = {5, 0, 1}});
}

TEST_CASE("sinks and biases of experts are on one rank each, also beside a rank without columns") {
  const RandomOptions model{.model_type = "gpt_oss",
                            .layers = 3,
                            .heads = 8,
                            .expert_mlp = 96,
                            .has_tied_head = false,
                            .bits = 4,
                            .mode = format::QuantMode::kMxfp4,
                            .window = 5};
  for (uint32_t ranks = 2; ranks <= 4; ++ranks)
    check_equals_one_rank({.model = model, .ranks = ranks});
  check_equals_one_rank({.model = model, .split = topology::Split::kPipeline, .ranks = 2});
  check_equals_one_rank({.model = model, .ranks = 3, .shares = {5, 0, 1}});
  check_equals_one_rank({.model = model, .ranks = 2, .shares = {0, 1}});
}

TEST_CASE("channels of convolutions cut, or whole in stages, give one rank's logits") {
  const auto model = [](Heads h, int bits) {
    return RandomOptions{.model_type = "lfm2",
                         .layers = 5,
                         .hidden = 96,
                         .heads = h.heads,
                         .kv_heads = h.kv_heads,
                         .taps = h.heads == 9 ? 4U : 3U,
                         .has_biases = h.heads == 9,
                         .bits = bits};
  };
  for (const Heads h : {kHeads[0], kHeads[1]})
    for (const int bits : {0, 4})
      for (uint32_t ranks = 2; ranks <= 4; ++ranks)
        for (const auto split : {topology::Split::kTensor, topology::Split::kPipeline})
          check_equals_one_rank({.model = model(h, bits), .split = split, .ranks = ranks});
  check_equals_one_rank({.model = model(kHeads[1], 4), .ranks = 3, .shares = {5, 0, 1}});
  check_equals_one_rank({.model = model(kHeads[0], 0), .ranks = 2, .shares = {0, 1}});
}

TEST_CASE("split: key heads of linear attention go to ranks, of which some get none") {
  const RandomOptions o{
      .model_type = "qwen3_5", .layers = 4, .hidden = 96, .heads = 6, .delta_heads = 3, .bits = 4};
  for (uint32_t ranks = 2; ranks <= 4; ++ranks) check_equals_one_rank({.model = o, .ranks = ranks});
  check_equals_one_rank({.model = o, .ranks = 3, .shares = {5, 0, 1}});
  check_equals_one_rank({.model = o, .split = topology::Split::kPipeline, .ranks = 3});
}

TEST_CASE("split: groups of Mamba 2 go to ranks, or heads of one group, of which some get none") {
  const RandomOptions hybrid{.model_type = "nemotron_h",
                             .layers = 5,
                             .hidden = 96,
                             .heads = 6,
                             .attends_from = 0,  // and so all kinds of layers are there
                             .delta_heads = 3,
                             .bits = 4};
  RandomOptions pure = hybrid;
  pure.model_type = "mamba2";
  for (const RandomOptions& o : {hybrid, pure}) {
    for (uint32_t ranks = 2; ranks <= 4; ++ranks)
      check_equals_one_rank({.model = o, .ranks = ranks});
    check_equals_one_rank({.model = o, .ranks = 3, .shares = {5, 0, 1}});
    check_equals_one_rank({.model = o, .split = topology::Split::kPipeline, .ranks = 5});
  }
}

TEST_CASE(
    "split: heads of linear attention beside latent attention, of which some ranks get none") {
  for (const char* type : {"bailing_hybrid", "kimi_linear"})
    for (const int bits : {0, 4}) {
      const RandomOptions o{.model_type = type,
                            .layers = 4,
                            .hidden = 96,
                            .heads = 6,
                            .delta_heads = 3,
                            .bits = bits};
      for (uint32_t ranks = 2; ranks <= 4; ++ranks)
        check_equals_one_rank({.model = o, .ranks = ranks});
      check_equals_one_rank({.model = o, .ranks = 3, .shares = {5, 0, 1}});
      check_equals_one_rank({.model = o, .split = topology::Split::kPipeline, .ranks = 4});
    }
}

TEST_CASE("latent attention over several ranks, some of them without heads, equals one rank") {
  const auto model = [](int bits, bool has_kv_b) {
    return model::RandomOptions{
        .model_type = "deepseek_v3", .layers = 3, .heads = 6, .has_kv_b = has_kv_b, .bits = bits};
  };
  for (const bool has_kv_b : {false, true})
    for (const int bits : {0, 4})
      for (uint32_t ranks = 2; ranks <= 4; ++ranks)
        for (const auto split : {topology::Split::kTensor, topology::Split::kPipeline})
          if (split == topology::Split::kTensor || ranks <= 3)
            check_equals_one_rank({.model = model(bits, has_kv_b), .split = split, .ranks = ranks});
  check_equals_one_rank({.model = model(4, false), .ranks = 3, .shares = {5, 0, 1}});
  check_equals_one_rank({.model = model(0, true), .ranks = 8});
}

TEST_CASE("a layer with two latent attentions, and choices that are no experts, equal one rank") {
  const RandomOptions o{.model_type = "longcat_flash", .layers = 3, .heads = 6};
  for (const int bits : {0, 4}) {
    RandomOptions quantized = o;
    quantized.bits = bits;
    for (uint32_t ranks = 2; ranks <= 4; ++ranks)
      check_equals_one_rank({.model = quantized, .ranks = ranks});
    for (uint32_t ranks = 2; ranks <= 3; ++ranks)
      check_equals_one_rank(
          {.model = quantized, .split = topology::Split::kPipeline, .ranks = ranks});
  }
  check_equals_one_rank({.model = o, .ranks = 3, .shares = {0, 5, 1}});
  check_equals_one_rank({.model = o, .ranks = 8});
}

TEST_CASE("values narrower than keys, in layers with other KV heads and sinks, equal one rank") {
  const RandomOptions o{.model_type = "mimo_v2_flash", .layers = 3, .window = 5};
  for (const int bits : {0, 4}) {
    RandomOptions quantized = o;
    quantized.bits = bits;
    for (uint32_t ranks = 2; ranks <= 4; ++ranks)
      check_equals_one_rank({.model = quantized, .ranks = ranks});
    check_equals_one_rank({.model = quantized, .split = topology::Split::kPipeline, .ranks = 3});
  }
  check_equals_one_rank({.model = o, .ranks = 3, .shares = {5, 0, 1}});
  check_equals_one_rank({.model = o, .ranks = 6});
}

/// Weights that each rank loads, beside what was estimated from the header.
void check_estimate(const RandomOptions& o) {
  CAPTURE(o.model_type);
  const auto plans = mixed_plans(o.vocab, 4, o.has_states());
  for (const auto split : {topology::Split::kTensor, topology::Split::kPipeline}) {
    const auto loaded = run_ranks({.model = o, .split = split, .ranks = 3}, plans).weight_bytes;
    const model::RandomCheckpoint checkpoint(o);
    const auto description = model::describe(checkpoint);
    const auto parts = topology::place(description->config.shape(32), split, 3);
    for (size_t rank = 0; rank < 3; ++rank) {
      CAPTURE(rank);
      const auto need = estimate(checkpoint, *description, (*parts)[rank], {});
      CHECK(static_cast<double>(need->weights) ==
            doctest::Approx(static_cast<double>(loaded[rank])).epsilon(0.03));
    }
  }
}

// Parts are multiples of the 16 rows that are packed together, or nearly.
TEST_CASE("what is estimated for a rank is about what it loads, whatever its layers are") {
  RandomOptions o{.model_type = "qwen3_moe",
                  .layers = 3,
                  .hidden = 128,
                  .heads = 8,
                  .expert_mlp = 96,
                  .vocab = 480,
                  .has_tied_head = false,
                  .bits = 4};
  check_estimate(o);
  o.model_type = "gpt_oss";
  o.mode = format::QuantMode::kMxfp4;
  check_estimate(o);
  check_estimate({.model_type = "qwen3_5",
                  .layers = 4,
                  .hidden = 128,
                  .heads = 8,
                  .delta_heads = 4,
                  .vocab = 480,
                  .has_tied_head = false,
                  .bits = 4});
  for (const char* type : {"bailing_hybrid", "kimi_linear", "mamba2", "nemotron_h"})
    check_estimate({.model_type = type,
                    .layers = 5,
                    .hidden = 128,
                    .heads = 8,
                    .experts = 16,
                    .expert_mlp = 96,
                    .attends_from = 0,
                    .delta_heads = 24,
                    .vocab = 480,
                    .has_tied_head = false,
                    .bits = 4});
  RandomOptions latent{.model_type = "deepseek_v3",
                       .layers = 3,
                       .hidden = 128,
                       .heads = 8,
                       .expert_mlp = 96,
                       .latent = 64,
                       .vocab = 480,
                       .has_tied_head = false,
                       .bits = 4};
  check_estimate(latent);
  latent.has_kv_b = true;
  check_estimate(latent);
  latent.has_kv_b = false;
  latent.model_type = "longcat_flash";
  check_estimate(latent);
  latent.model_type = "mimo_v2_flash";
  latent.head_dim = 64;
  latent.window = 5;
  check_estimate(latent);
}

TEST_CASE("a pipeline gives the same logits whatever the length of its steps") {
  const auto prompt = random_tokens(96, 101, 5);
  RanksSetup setup = {
      .model = model_of(kHeads[1], 4), .split = topology::Split::kPipeline, .ranks = 2};
  const auto last_logits = [&](size_t chunk) {
    const RanksOutcome out = run_ranks(setup, chunked_plans(prompt, chunk, 64, 4));
    REQUIRE(out.errors.empty());
    return out.logits.back();
  };
  const Logits whole = last_logits(prompt.size());
  for (const size_t chunk : {8, 20, 64}) CHECK(last_logits(chunk) == whole);
}

// What a slow stage takes: sanitizers slow the rest.
#ifdef __SANITIZE_ADDRESS__
constexpr std::chrono::milliseconds kStageTime{200};
#else
constexpr std::chrono::milliseconds kStageTime{20};
#endif

TEST_CASE("two stages overlap the chunks of a prompt") {
  const auto plans = chunked_plans(random_tokens(64, 101, 4), 8, 64, 4);
  REQUIRE(plans.size() == 8);
  RanksSetup setup = {
      .model = model_of(kHeads[0], 0), .split = topology::Split::kPipeline, .ranks = 2};
  setup.before_layers = [] { std::this_thread::sleep_for(kStageTime); };
  setup.is_serial = true;
  const RanksOutcome serial = run_ranks(setup, plans);
  REQUIRE(serial.errors.empty());
  CHECK(serial.elapsed >= 8 * 2 * kStageTime);
  setup.is_serial = false;
  auto best = serial.elapsed;
  for (int attempt = 0; attempt < 3 && best > serial.elapsed * 65 / 100;
       ++attempt) {  // a busy machine is no defect
    const RanksOutcome overlapped = run_ranks(setup, plans);
    REQUIRE(overlapped.errors.empty());
    CHECK(overlapped.logits == serial.logits);
    best = std::min(best, overlapped.elapsed);
  }
  CHECK(best <= serial.elapsed * 65 / 100);
}

TEST_CASE("a rank that executes a tampered page table gets another state hash") {
  const auto plans = mixed_plans(101, 4);
  RanksSetup setup = {.model = model_of(kHeads[0], 0), .ranks = 2};
  setup.tamper = [](uint32_t rank, plan::StepPlan& plan) {
    if (rank == 1 && plan.sequence == 2) std::swap(plan.rows[0].pages[0], plan.rows[0].pages[1]);
  };
  const RanksOutcome out = run_ranks(setup, plans);
  REQUIRE(out.errors.empty());
  CHECK(out.hashes[0][1] == out.hashes[1][1]);
  CHECK(out.hashes[0][2] != out.hashes[1][2]);
  CHECK(out.hashes[0][3] != out.hashes[1][3]);
}

TEST_CASE("each rank holds its own part of the weights only") {
  const RandomOptions o = {
      .layers = 4, .hidden = 256, .heads = 8, .kv_heads = 4, .mlp = 512, .vocab = 1024, .bits = 4};
  const auto plans = chunked_plans(random_tokens(4, o.vocab, 1), 4, 64, 4);
  const auto whole = run_ranks({.model = o}, plans).weight_bytes[0];
  for (const auto split : {topology::Split::kTensor, topology::Split::kPipeline}) {
    const auto parts = run_ranks({.model = o, .split = split, .ranks = 4}, plans);
    REQUIRE(parts.errors.empty());
    for (const uint64_t bytes : parts.weight_bytes) CHECK(bytes < whole * 4 / 10);
  }
}

/// Rank 0 runs the plans while rank 1 is there but does `instead`; the error that ends rank 0.
Error error_of_rank_0(std::function<void(ModelRunner& rank_0, ModelRunner& rank_1)> instead) {
  static std::atomic<int> count = 0;
  const std::string name = fmt::format("runner_test.{}.abort.{}", getpid(), count++);
  std::array<std::unique_ptr<ModelRunner>, 2> runners;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    auto runner =
        ModelRunner::load(std::make_shared<model::RandomCheckpoint>(model_of(kHeads[0], 0)),
                          {.rank = rank, .ranks = 2, .page_tokens = 4, .pages = 64});
    TANDEM_CHECK(runner.has_value(), "{}", runner.error().message);
    runners[rank] = std::move(runner).value();
  }
  std::thread other([&] { runners[1]->set_transport(join_group(name, 1, 2)); });
  runners[0]->set_transport(join_group(name, 0, 2));
  other.join();
  for (auto& runner : runners) TANDEM_CHECK(runner->reset(0).has_value(), "reset failed");
  std::thread saboteur([&] { instead(*runners[0], *runners[1]); });
  Error error;
  for (const auto& plan : mixed_plans(101, 4)) {
    const Status issued = runners[0]->issue(plan);
    const auto result =
        issued ? runners[0]->complete() : Result<engine::StepResult>(issued.error());
    if (result) continue;
    error = result.error();
    break;
  }
  saboteur.join();
  return error;
}

TEST_CASE("a rank that aborts ends its peers' steps") {
  CHECK(error_of_rank_0([](ModelRunner&, ModelRunner& rank_1) { rank_1.abort(); }).code ==
        ErrorCode::kPeerLost);
}

TEST_CASE("an abort from another thread ends a step that waits for a peer") {
  CHECK(error_of_rank_0([](ModelRunner& rank_0, ModelRunner&) { rank_0.abort(); }).code ==
        ErrorCode::kPeerLost);
}

}  // namespace
}  // namespace tandem::runner
