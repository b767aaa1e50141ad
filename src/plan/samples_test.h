// One filled value of every frame and a plan, for tests and corpora.
#pragma once

#include <vector>

#include "plan/frames.h"

namespace tandem::plan::samples {

inline StepPlan plan() {
  return {.epoch = 3,
          .sequence = 41,
          .copies = {{.from = 7, .to = 9}},
          .window_copies = {{.from = 2, .to = 1}},
          .rows = {{.request = 11,
                    .numeric_class = NumericClass::kChunk,
                    .start = 16,
                    .tokens = {5, 6, 7},
                    .pages = {4, 5, 6, 9, 2, 3},
                    .window_start = 8,
                    .window_pages = {0, 1, 4},
                    .state = 3,
                    .saves = {{.tokens = 2, .slot = 5}, {.tokens = 3, .slot = 4}},
                    .wants_logits = false},
                   {.request = 12,
                    .numeric_class = NumericClass::kStep,
                    .start = 30,
                    .tokens = {-1, 2147483647},
                    .pages = {4294967295U, 0},
                    .wants_logits = true},
                   {.request = 13,
                    .numeric_class = NumericClass::kStep,
                    .start = 40,
                    .tokens = {kDrawn},
                    .pages = {8, 10, 11, 12, 13},
                    .draw = Draw{.temperature = 0.75F,
                                 .top_p = 0.5F,
                                 .top_k = 40,
                                 .min_p = 0.125F,
                                 .seed = 0x123456789abcdef0U,
                                 .choice = 1},
                    .reuse = IndexReuse{.most_age = 48, .from = 31}},
                   {.request = 14, .tokens = {9}, .pages = {14}, .pooling = gen::Pooling::kLast}}};
}

inline gen::Request request() {
  gen::Request r;
  r.id = 77;
  r.client = "127.0.0.1";
  r.salt = "s";
  r.prompt = {1, 2, 3};
  r.emitted = {4};
  r.sampling.temperature = 0.8F;
  r.sampling.top_k = 40;
  r.sampling.xtc_exempt = {13};
  r.sampling.repetition = {.value = 1.1F, .context = 64};
  r.sampling.logit_bias = {{.id = 2, .bias = -100.0F}};
  r.sampling.seed = 0x123456789abcdef0U;
  r.max_tokens = 128;
  r.stop_ids = {2, 0};
  r.logprobs = 5;
  r.priority = gen::Priority::kLow;
  r.deadline = std::chrono::milliseconds(1500);
  r.index_reuse = 7;
  r.pooling = gen::Pooling::kLast;
  r.grammar = {.kind = gen::GrammarKind::kAmbiguousLark, .source = "start: \"a\""};
  return r;
}

inline std::vector<gen::Event> events() {
  return {
      {.request = 1, .body = gen::Started{.cached_tokens = 32}},
      {.request = 1, .body = gen::Prefilled{.done = 64, .total = 100}},
      {.request = 1,
       .body = gen::Tokens{{{.id = 9, .logprob = -0.5F, .top = {{.id = 9, .logprob = -0.5F}}}}}},
      {.request = 1, .body = gen::Finished{.reason = gen::FinishReason::kLength}},
      {.request = 2, .body = gen::Failed{{ErrorCode::kInternal, "broken", "prompt"}}},
      {.request = 3, .body = gen::Cancelled{}},
      {.request = 4, .body = gen::Embedding{{0.5F, -2}}}};
}

inline std::vector<Frame> frames() {
  const Error error{ErrorCode::kPeerLost, "rank 1 closed its link"};
  return {
      Hello{.protocol = 3,
            .build = "0.1.0",
            .instance = "a",
            .rank = 1,
            .size = 2,
            .pid = 4242,
            .plan_address = "127.0.0.1:5000",
            .data_address = "127.0.0.1:5001",
            .model_fingerprint = "f00d",
            .memory_bytes = uint64_t{1} << 40},
      Ready{.epoch = 3,
            .limits = {.vocab = 49152, .max_context = 8192, .chooses_blocks = true, .hidden = 576},
            .pages = 1024,
            .page_tokens = 16,
            .depth = 2},
      Beat{
          .epoch = 3, .steps = 100, .busy = true, .predicted_step = std::chrono::microseconds(700)},
      Report{.epoch = 3, .events = events()},
      Refused{.epoch = 3, .request = 77, .error = {ErrorCode::kBusy, "queue is full"}},
      Fault{.epoch = 3, .error = error},
      Aborted{.epoch = 3},
      Drained{},
      Loading{.text = "weights", .fraction = 0.25F},
      Figures{.memory = {.weight_bytes = uint64_t{1} << 33,
                         .cache_bytes = uint64_t{1} << 32,
                         .resident_bytes = 12345678},
              .engine = EngineFigures{.waiting = 1,
                                      .paused = 2,
                                      .running = 3,
                                      .pages = {4, 5, 6},
                                      .window_pages = {17, 18, 19},
                                      .states = {20, 21, 22},
                                      .totals = {.steps = 7,
                                                 .rows = 8,
                                                 .answer_tokens = 9,
                                                 .prompt_tokens = 10,
                                                 .reused_tokens = 11,
                                                 .computed_tokens = 12,
                                                 .pauses = 13,
                                                 .window_pages_left = 23,
                                                 .step_time = std::chrono::nanoseconds(14),
                                                 .step_counts = {15, 0, 16}}}},
      Form{.epoch = 4,
           .rank = 1,
           .size = 2,
           .plan_addresses = {"127.0.0.1:5000", "127.0.0.1:5002"},
           .data_addresses = {"", ""},
           .comm = CommKind::kTcp,
           .shared_memory_name = "/tandem-a-4",
           .secret = {std::byte{1}, std::byte{2}},
           .timeout = std::chrono::milliseconds(2500)},
      Submit{.epoch = 4, .request = request()},
      Cancel{.epoch = 4, .request = 77},
      Abort{.epoch = 4},
      Drain{},
      HeadBeat{},
      Shutdown{},
      Join{.rank = 1, .epoch = 4},
      Execute{plan()},
      Ack{.sequence = 41, .state_hash = 0xfeedfacecafebeefU},
      FollowerFault{.sequence = 41, .error = error}};
}

}  // namespace tandem::plan::samples
