#include "chat/local_service.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "chat/testdata/harness.h"

using namespace tandem;
using namespace tandem::chat;

TEST_CASE(
    "service: a conversation is rendered, encoded without additions and given the model's ends") {
  Harness harness;
  harness.answer("hello world");
  Request asked = Harness::request();
  asked.client = "c";
  asked.salt = "s";
  asked.seed = 9;
  asked.min_tokens = 1;
  const Seen& seen = harness.run(asked);
  CHECK(seen.text == "hello world");
  const gen::Request given = harness.fake.submitted().front();
  CHECK(given.prompt ==
        harness.encode("<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"));
  CHECK(given.stop_ids == harness.model.eos);
  CHECK(given.sampling.seed == 9);
  CHECK(given.client == "c");
  CHECK(given.salt == "s");
  CHECK(given.min_tokens == 1);
}

TEST_CASE("service: usage counts what was drawn, reused and thought") {
  Harness harness;
  harness.reply.cached_tokens = 3;
  harness.answer("<think>hello world</think>hello");
  const Seen& seen = harness.run();
  REQUIRE(seen.ends.size() == 1);
  CHECK(seen.thinking == "hello world");
  CHECK(seen.text == "hello");
  const Usage usage = seen.ends[0].usage;
  CHECK(usage.prompt_tokens == harness.fake.submitted()[0].prompt.size());
  CHECK(usage.cached_tokens == 3);
  CHECK(usage.completion_tokens == 6);
  CHECK(usage.reasoning_tokens == 2);
  CHECK(seen.ends[0].reason == FinishReason::kStop);
  CHECK(seen.ends[0].stop_text.empty());
}

TEST_CASE("service: an answer whose prompt ends in a thinking block begins in thinking") {
  Harness harness;
  harness.answer("hello</think> world", true);
  Request asked = Harness::request();
  std::get<Conversation>(asked.input).template_arguments = {{"open_thinking", true}};
  const Seen& seen = harness.run(asked);
  CHECK(seen.thinking == "hello");
  CHECK(seen.text == " world");
  CHECK(seen.ends.at(0).usage.reasoning_tokens == 1);
}

TEST_CASE("service: special tokens and ends are no text, other added tokens are") {
  Harness harness;
  harness.answer("a<|pad|>b<tool_call>c");
  CHECK(harness.run().text == "ab<tool_call>c");
  Request asked = Harness::request();
  asked.ignore_eos = true;
  harness.reply.tokens.push_back(harness.encode("d").front());
  const Seen& seen = harness.run(asked);
  CHECK(seen.text == "ab<tool_call>cd");
  CHECK(seen.ends.at(0).usage.completion_tokens == 7);
}

TEST_CASE("service: a raw prompt is encoded with additions and its answer is all text") {
  Harness harness;
  harness.answer("<think>hello</think>");
  Request asked = Harness::request();
  asked.input = RawPrompt{.prompt = std::string("hello")};
  const Seen& seen = harness.run(asked);
  CHECK(seen.text == "<think>hello</think>");
  CHECK(seen.thinking.empty());
  CHECK(seen.ends.at(0).usage.reasoning_tokens == 0);
  asked.input = RawPrompt{.prompt = std::vector<gen::TokenId>{1, 2, 3}};
  harness.run(asked);
  CHECK(harness.fake.submitted().back().prompt == std::vector<gen::TokenId>{1, 2, 3});
}

TEST_CASE("service: a prompt is counted as it would be submitted, however long it is") {
  Harness harness(gen::Fake::Delivery::kOnDemand, 40);
  harness.answer("hello");
  Request asked = Harness::request();
  const auto counted = harness.service.count_prompt(asked);
  REQUIRE(counted);
  CHECK(*counted == harness.run(asked).ends.at(0).usage.prompt_tokens);
  asked.input = RawPrompt{.prompt = std::vector<gen::TokenId>(90, 1)};
  CHECK(harness.service.count_prompt(asked).value() == 90);
  asked.input = Conversation{};
  CHECK(harness.service.count_prompt(asked).error().field == "messages");
}

TEST_CASE("service: what the template does not read is told") {
  const Harness harness;
  Request asked = Harness::request();
  CHECK(harness.service.warnings(asked).empty());
  auto& conversation = std::get<Conversation>(asked.input);
  conversation.tools = Json::parse(R"([{"type":"function","function":{"name":"f"}}])");
  conversation.template_arguments = {
      {"open_thinking", true}, {"enable_thinking", true}, {"opne_thinking", true}};
  const auto warnings = harness.service.warnings(asked);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0].code == "tools_not_in_template");
  CHECK(warnings[1].code == "unknown_template_argument");
  CHECK(warnings[1].message.find("\"opne_thinking\"") != std::string::npos);
  asked.input = RawPrompt{.prompt = std::string("hello")};
  CHECK(harness.service.warnings(asked).empty());
}

TEST_CASE("service: progress comes before the first token only") {
  Harness harness;
  harness.reply.cached_tokens = 3;
  harness.answer("hello");
  const Seen& seen = harness.run();
  REQUIRE(seen.events.size() >= 3);
  const auto* progress = std::get_if<Progress>(&seen.events[0].body);
  REQUIRE(progress != nullptr);
  CHECK(progress->done == progress->total);
  CHECK(progress->cached == 3);
  for (size_t i = 1; i < seen.events.size(); ++i) {
    CHECK_FALSE(std::holds_alternative<Progress>(seen.events[i].body));
  }
}

TEST_CASE("service: the context told is the model's or what the generator holds, the lesser") {
  const auto told = [](uint32_t held, uint32_t own) {
    gen::Fake fake({.vocab = held == 0 ? 0U : 320U, .max_context = held},
                   [](const gen::Request&) { return gen::FakeReply{}; });
    const LocalService service(fake, fixture_model(),
                               {.id = "m", .max_context = own, .max_output = own, .vocab = 320});
    const ModelInfo info = service.model();
    CHECK(info.max_output <= info.max_context);
    return info.max_context;
  };
  CHECK(told(100, 4096) == 100);
  CHECK(told(4096, 100) == 100);
  CHECK(told(100, 0) == 100);
  CHECK(told(0, 4096) == 4096);  // not ready: only the model is known
}

TEST_CASE("service: before the generator knows its sizes, prompts are held to the model's") {
  gen::Fake fake({}, [](const gen::Request&) { return gen::FakeReply{}; });
  Request asked = Harness::request();
  asked.input = RawPrompt{.prompt = std::vector<gen::TokenId>{1, 2, 3}};
  const auto refusal = [&](uint32_t context, uint32_t vocab) {
    LocalService service(fake, fixture_model(),
                         {.id = "m", .max_context = context, .vocab = vocab});
    const auto accepted = service.submit(asked, [](const Event&) {});
    REQUIRE_FALSE(accepted);
    return accepted.error();
  };
  CHECK(refusal(3, 320).code == ErrorCode::kTooLarge);
  CHECK(refusal(3, 320).message.find("3 tokens > 2 maximum") != std::string::npos);
  CHECK(refusal(9, 2).code == ErrorCode::kInvalid);
  CHECK(refusal(0, 320).code == ErrorCode::kUnavailable);
}

TEST_CASE(
    "service: prompts that leave no room name both numbers, and long answers are cut to fit") {
  Harness harness(gen::Fake::Delivery::kOnDemand, 40);
  harness.answer(std::string(100, 'x'), false);
  Request asked = Harness::request();
  asked.max_tokens = 90;
  const Seen& seen = harness.run(asked);
  CHECK(seen.ends.at(0).reason == FinishReason::kLength);
  CHECK(seen.ends[0].usage.prompt_tokens + seen.ends[0].usage.completion_tokens == 40);

  asked.input = RawPrompt{.prompt = std::vector<gen::TokenId>(40, 1)};
  const auto refused = harness.service.submit(asked, harness.sink());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kTooLarge);
  CHECK(refused.error().field == "prompt");
  CHECK(
      refused.error().message ==
      "prompt is too long: 40 tokens > 39 maximum (a context of 40 tokens, with room for at least "
      "one more)");
  asked.input = RawPrompt{.prompt = std::vector<gen::TokenId>(39, 1)};
  CHECK(harness.service.submit(asked, harness.sink()));
}

TEST_CASE("service: requests that make no sense are refused with the field's name") {
  Harness harness;
  const auto field_of = [&](const Request& asked) {
    const auto refused = harness.service.submit(asked, harness.sink());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kInvalid);
    return refused.error().field;
  };
  Request asked = Harness::request();
  asked.choices = 0;
  CHECK(field_of(asked) == "n");
  asked = Harness::request();
  asked.max_tokens = 0;
  CHECK(field_of(asked) == "max_tokens");
  asked = Harness::request();
  asked.sampling.logit_bias = {{.id = -1, .bias = 1}};
  CHECK(field_of(asked) == "logit_bias");
  asked.sampling.logit_bias = {{.id = 320, .bias = 1}};
  CHECK(field_of(asked) == "logit_bias");
  asked = Harness::request();
  for (const RawPrompt& raw :
       {RawPrompt{std::string()}, RawPrompt{std::vector<gen::TokenId>{}},
        RawPrompt{std::vector<gen::TokenId>{320}}, RawPrompt{std::vector<gen::TokenId>{-1}},
        RawPrompt{std::string("a\xFF")}}) {
    asked.input = raw;
    CHECK(field_of(asked) == "prompt");
  }
  asked.input = Conversation{};
  CHECK(field_of(asked) == "messages");
  CHECK(harness.seen.empty());
}

TEST_CASE("service: choices differ by index alone and each gets its own last event") {
  Harness harness;
  harness.script = [&](const gen::Request& request) {
    gen::FakeReply reply;
    reply.tokens = harness.encode(request.sampling.choice == 0 ? "hello" : " world and");
    reply.tokens.push_back(harness.model.eos.front());
    return reply;
  };
  Request asked = Harness::request();
  asked.choices = 3;
  harness.run(asked);
  REQUIRE(harness.seen.size() == 3);
  CHECK(harness.seen[0].text == "hello");
  CHECK(harness.seen[2].text == " world and");
  std::set<gen::RequestId> ids;
  for (const auto& given : harness.fake.submitted()) {
    CHECK(given.sampling.seed == harness.fake.submitted()[0].sampling.seed);
    ids.insert(given.id);
  }
  CHECK(ids.size() == 3);
  for (const auto& [choice, seen] : harness.seen) CHECK(seen.last_events() == 1);
}

TEST_CASE("service: a refused choice takes the accepted ones back, and no event follows") {
  Harness harness;
  const Error busy{.code = ErrorCode::kBusy, .message = "full"};
  harness.script = [&](const gen::Request& request) {
    return request.sampling.choice == 2 ? gen::FakeReply{.refusal = busy}
                                        : gen::FakeReply{.tokens = {1, 2}, .hangs = true};
  };
  Request asked = Harness::request();
  asked.choices = 3;
  const auto refused = harness.service.submit(asked, harness.sink());
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == busy);
  while (harness.fake.step()) {
  }
  CHECK(harness.seen.empty());
  CHECK(harness.fake.running() == 0);
  harness.script = [](const gen::Request&) { return gen::FakeReply{.tokens = {1}}; };
  CHECK(harness.run(asked).last_events() == 1);
}

TEST_CASE("service: a name is taken while its request runs") {
  Harness harness;
  harness.reply.hangs = true;
  REQUIRE(harness.service.submit(Harness::request("a"), harness.sink()));
  const auto taken = harness.service.submit(Harness::request("a"), harness.sink());
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == ErrorCode::kConflict);
  REQUIRE(harness.service.submit(Harness::request("b"), harness.sink()));
  CHECK(harness.service.cancel("a"));
  while (harness.fake.step()) {
  }
  CHECK_FALSE(harness.service.cancel("a"));
  REQUIRE(harness.service.submit(Harness::request("a"), harness.sink()));
}

TEST_CASE("service: a cancelled request ends every choice as cancelled") {
  Harness harness;
  harness.answer("hello world");
  harness.reply.tokens.pop_back();
  harness.reply.hangs = true;
  Request asked = Harness::request();
  asked.choices = 2;
  REQUIRE(harness.service.submit(asked, harness.sink()));
  for (int i = 0; i < 6; ++i) harness.fake.step();
  CHECK(harness.service.cancel("r"));
  while (harness.fake.step()) {
  }
  for (const auto& [choice, seen] : harness.seen) {
    REQUIRE(seen.failures.size() == 1);
    CHECK(seen.failures[0].error.code == ErrorCode::kCancelled);
    CHECK(seen.last_events() == 1);
    CHECK(seen.failures[0].usage.completion_tokens == 1);
  }
  CHECK_FALSE(harness.service.cancel("unknown"));
}

TEST_CASE("service: a failure comes last, after the text that was held back") {
  Harness harness;
  harness.answer("hello<th", false);
  harness.reply.failure = Error{.code = ErrorCode::kPeerLost, .message = "rank 1 died"};
  const Seen& seen = harness.run();
  CHECK(seen.text == "hello<th");
  REQUIRE(seen.failures.size() == 1);
  CHECK(seen.failures[0].error == *harness.reply.failure);
  CHECK(seen.failures[0].usage.completion_tokens == harness.reply.tokens.size());
  CHECK(seen.events.back().is_last());
}

TEST_CASE("service: models without a template serve raw prompts only") {
  gen::Fake fake(
      {.vocab = 320, .max_context = 64}, [](const gen::Request&) { return gen::FakeReply{}; },
      gen::Fake::Delivery::kOnDemand);
  text::ModelText model = fixture_model();
  model.chat_template = nullptr;
  LocalService service(fake, model, {.id = "m"});
  const auto refused = service.submit(Harness::request(), [](const Event&) {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  Request asked = Harness::request();
  asked.input = RawPrompt{.prompt = std::string("x")};
  CHECK(service.submit(asked, [](const Event&) {}));
}

TEST_CASE("service: a prompt without a generation is the one that a generation has") {
  Harness harness;
  harness.answer("hello");
  harness.run(Harness::request());
  const auto sent = harness.fake.submitted().front().prompt;
  const Request asked = Harness::request();
  const auto text = harness.service.render(std::get<Conversation>(asked.input));
  REQUIRE(text.has_value());
  CHECK(harness.service.encode(*text, false).value() == sent);
  CHECK(harness.service.decode(sent).value() == *text);
  std::string joined;
  const auto pieces = harness.service.token_bytes(sent).value();
  for (const std::string& bytes : pieces) joined += bytes;
  CHECK(joined == *text);
  CHECK_FALSE(harness.service.encode("\xFF", false).has_value());
}

TEST_CASE("service: ids outside of the vocabulary have no text") {
  Harness harness;
  for (const gen::TokenId id : {-1, 1 << 30}) {
    CHECK(harness.service.decode({id}).error().field == "tokens");
    CHECK(harness.service.token_bytes({id}).error().code == ErrorCode::kInvalid);
  }
  CHECK(harness.service.decode({}).value().empty());
}

TEST_CASE("service: a sink may cancel its own request") {
  Harness harness;
  harness.answer("hello world");
  Request asked = Harness::request();
  asked.choices = 2;
  int last = 0;
  REQUIRE(harness.service.submit(asked, [&](const Event& event) {
    if (std::holds_alternative<Delta>(event.body)) CHECK(harness.service.cancel("r"));
    last += event.is_last();
  }));
  while (harness.fake.step()) {
  }
  CHECK(last == 2);
}
