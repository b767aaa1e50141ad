// Words of hesitation are made unlikely inside thinking, and nowhere else.
#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "chat/hesitation.h"
#include "chat/testdata/harness.h"

namespace tandem::chat {
namespace {

using Ids = std::vector<gen::TokenId>;

constexpr uint32_t kVocab = 301;
const Ids kHesitations = {298, 299, 300};
constexpr float kPenalty = 4;

/// The fixture with three more tokens: "Wait" twice, and the beginning of "Alternatively".
text::ModelText hesitant_model() {
  Json tokenizer = Json::parse(text::read_testdata("byte_level.json"));
  gen::TokenId id = 298;
  for (const char* content : {"Wait", " Wait", "Altern"}) {
    Json token = tokenizer["added_tokens"].back();
    token["id"] = id++;
    token["content"] = content;
    token["special"] = false;
    tokenizer["added_tokens"].push_back(token);
  }
  auto model = text::load_model_text(
      text::TokenizerFiles{.tokenizer_json = tokenizer.dump(),
                           .tokenizer_config = R"({"eos_token": "<|im_end|>"})",
                           .chat_template_jinja = kChatTemplate},
      Json::object());
  TANDEM_CHECK(model.has_value(), "{}", model.error().message);
  return std::move(model).value();
}

bool has_bias(const gen::Request& request) {
  return std::ranges::any_of(request.sampling.logit_bias, [](const gen::LogitBias& bias) {
    return bias.id == kHesitations.front() && bias.bias == -kPenalty;
  });
}

/// A model whose draw at a position depends on the position, the seed, the choice and what stands
/// before it; words of hesitation become " an" where the generation makes them unlikely. Like an
/// engine it draws on behind whatever was emitted.
class Hesitant {
 public:
  using Draw = std::function<gen::TokenId(const gen::Request&, const Ids& before)>;

  explicit Hesitant(Draw draw, const LocalServiceOptions& options = {})
      : draw_(std::move(draw)),
        service(fake, model, {.id = "m", .has_chat_template = true}, options) {}

  /// Draws this text, position by position, whatever was put in.
  explicit Hesitant(const std::string& text) : Hesitant(Draw()) {
    draw_ = [this, ids = encode(text)](const gen::Request&, const Ids& before) {
      return before.size() < ids.size() ? ids[before.size()] : model.eos.front();
    };
  }

  Ids encode(const std::string& text) const { return *model.tokenizer->encode(text, false); }

  static Request request(bool opens = false) {
    Request asked = Harness::request();
    asked.guards.hesitation_penalty = kPenalty;
    std::get<Conversation>(asked.input).template_arguments = {{"open_thinking", opens}};
    return asked;
  }

  const Seen& run(Request asked) {
    asked.id += std::to_string(++runs_);
    const uint32_t choices = asked.choices;
    first_ = fake.submitted().size();
    seen.clear();
    const auto accepted = service.submit(std::move(asked), [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      seen[event.choice].add(event);
      if (event.is_last()) ++ended_, changed_.notify_all();
    });
    TANDEM_CHECK(accepted.has_value(), "{}", accepted.error().message);
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return ended_ == choices; }));
    ended_ = 0;
    return seen[0];
  }

  /// Which generations of the last run had the bias, in order.
  std::vector<bool> biased() const {
    std::vector<bool> out;
    const auto all = fake.submitted();
    for (size_t i = first_; i < all.size(); ++i) out.push_back(has_bias(all[i]));
    return out;
  }

  size_t tokens_per_event = 1;
  text::ModelText model = hesitant_model();

 private:
  gen::FakeReply reply(const gen::Request& request) {
    gen::FakeReply out;
    out.tokens_per_event = tokens_per_event;
    out.tokens = request.emitted;
    const gen::TokenId other = encode(" an").front();
    while (out.tokens.size() < 400 && (out.tokens.size() == request.emitted.size() ||
                                       out.tokens.back() != model.eos.front())) {
      const gen::TokenId drawn = draw_(request, out.tokens);
      const bool is_moved =
          has_bias(request) && std::ranges::find(kHesitations, drawn) != kHesitations.end();
      out.tokens.push_back(is_moved ? other : drawn);
    }
    return out;
  }

  Draw draw_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t ended_ = 0;
  int runs_ = 0;
  size_t first_ = 0;

 public:
  std::map<uint32_t, Seen> seen;
  gen::Fake fake{{.vocab = kVocab, .max_context = 4096},
                 [this](const gen::Request& request) { return reply(request); }};
  LocalService service;
};

/// Words, some of hesitation, and now and then a marker of thinking: by position, not by cut.
gen::TokenId draw_by_position(const Hesitant& model,
                              const gen::Request& request,
                              const Ids& before) {
  static const char* const kWords[] = {"the",     " and",     " Wait", "Wait", "Altern", " world",
                                       "<think>", "</think>", " be",   "\n\n", "hello",  " a"};
  uint64_t bits = (request.sampling.seed * 31 + request.sampling.choice) * 1000 + before.size();
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  bits ^= bits >> 31;
  if (before.size() >= 40) return model.model.eos.front();
  return model.encode(kWords[bits % std::size(kWords)]).front();
}

size_t count(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST_CASE("hesitation: its tokens are whole words, and beginnings that tell the word") {
  CHECK(hesitation_tokens(*hesitant_model().tokenizer) == kHesitations);
  CHECK(hesitation_tokens(text::byte_level_fixture()).empty());
}

TEST_CASE("hesitation: the words are unlikely inside thinking, not in the answer, nor in calls") {
  Hesitant model(
      "<think>the Wait and Wait be</think>hello Wait world"
      "<tool_call>{\"name\": \"put\", \"arguments\": {\"t\": \"Wait <think> Wait\"}}</tool_call>");
  Request asked = Hesitant::request();
  std::get<Conversation>(asked.input).tools = Json::parse(R"([{"function": {"name": "put"}}])");
  asked.sampling.logit_bias = {{.id = 5, .bias = 1}};
  for (const size_t step : {1, 2, 3, 7, 100}) {
    CAPTURE(step);
    model.tokens_per_event = step;
    const Seen& seen = model.run(asked);
    CHECK(seen.thinking == "the an and an be");
    CHECK(seen.text == "hello Wait world");
    std::string arguments;
    for (const Event& event : seen.events) {
      if (const auto* part = std::get_if<CallArguments>(&event.body)) arguments += part->json;
    }
    CHECK(Json::parse(arguments)["t"] == "Wait <think> Wait");
    REQUIRE(seen.ends.size() == 1);
    CHECK(seen.ends[0].guards == std::vector{Guard::kHesitation});
    CHECK(model.biased() == std::vector{false, true, false});
    for (const gen::Request& request : model.fake.submitted()) {
      CHECK(request.sampling.logit_bias.front() == asked.sampling.logit_bias.front());
    }
  }
}

TEST_CASE("hesitation: without a penalty nothing is changed") {
  Hesitant model("<think>the Wait</think>so");
  Request asked = Hesitant::request();
  asked.guards.hesitation_penalty = 0;
  const Seen& seen = model.run(asked);
  CHECK(seen.thinking == "the Wait");
  CHECK(seen.ends.at(0).guards.empty());
  CHECK(model.biased() == std::vector{false});
  asked.guards.hesitation_penalty = kPenalty;
  asked.ignore_eos = true;
  asked.max_tokens = 4;
  model.run(asked);
  CHECK(model.biased() == std::vector{false});
}

TEST_CASE("hesitation: thinking that the prompt opens is drawn with it from the first token") {
  Hesitant model("Wait the Wait</think>hello Wait");
  const Seen& seen = model.run(Hesitant::request(true));
  CHECK(seen.thinking == " an the an");
  CHECK(seen.text == "hello Wait");
  CHECK(model.biased() == std::vector{true, false});
}

TEST_CASE("hesitation: a seeded answer is the same wherever steps cut it, every choice of it") {
  Hesitant model([&](const gen::Request& request, const Ids& before) {
    return draw_by_position(model, request, before);
  });
  size_t kept = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    Request asked = Hesitant::request(seed % 2 == 0);
    asked.seed = seed;
    asked.choices = 3;
    asked.logprobs = 0;
    std::map<uint32_t, Seen> whole;
    for (const size_t step : {1, 2, 5, 100}) {
      CAPTURE(step);
      model.tokens_per_event = step;
      model.run(asked);
      if (step == 1) whole = model.seen;
      for (uint32_t choice = 0; choice < 3; ++choice) {
        const Seen& seen = model.seen[choice];
        REQUIRE(seen.ends.size() == 1);
        CHECK(count(seen.thinking, "Wait") + count(seen.thinking, "Altern") == 0);
        kept += count(seen.text, "Wait");
        CHECK(seen.thinking == whole[choice].thinking);
        CHECK(seen.text == whole[choice].text);
        CHECK(seen.ends[0].usage.completion_tokens == 41);
        std::string bytes;
        for (const LogprobEntry& entry : seen.logprobs) bytes += entry.token.bytes;
        CHECK(count(bytes, "Wait") == count(seen.text, "Wait"));
      }
    }
  }
  CHECK(kept > 50);
}

TEST_CASE("hesitation: with a thinking budget one detour closes thinking and ends the bias") {
  Hesitant model("the Wait and Wait and the Wait and the Wait and so on Wait");
  Request asked = Hesitant::request(true);
  asked.guards.thinking_budget = 3;
  const Seen& seen = model.run(asked);
  CHECK(count(seen.thinking, "Wait") == 0);
  CHECK(count(seen.text, "Wait") > 0);
  CHECK(model.biased() == std::vector{true, false});
  CHECK(seen.ends.at(0).guards == std::vector{Guard::kHesitation, Guard::kThinkingBudget});
}

TEST_CASE("hesitation: a thought that is closed at its end is gone on from without it") {
  Hesitant model([&](const gen::Request&, const Ids& before) {
    const bool is_closed = std::ranges::find(before, model.encode("</think>")[0]) != before.end();
    if (before.size() == 2 || before.size() > 6) return model.model.eos.front();
    return is_closed ? kHesitations[0] : model.encode("the").front();
  });
  Request asked = Hesitant::request(true);
  asked.guards.unclosed_thought = true;
  const Seen& seen = model.run(asked);
  CHECK(seen.thinking == "thethe");
  CHECK(count(seen.text, "Wait") > 0);
  CHECK(model.biased() == std::vector{true, false});
  CHECK(seen.ends.at(0).guards == std::vector{Guard::kHesitation, Guard::kUnclosedThought});
}

TEST_CASE(
    "hesitation: an answer of a form is bound before and behind, and its text is left alone") {
  Hesitant model("<think>Wait the</think>hello Wait <think> Wait");
  Request asked = Hesitant::request();
  asked.form = {.kind = AnswerForm::Kind::kRegex, .source = "[a-zA-Z<> ]+", .field = "f"};
  const Seen& seen = model.run(asked);
  CHECK(seen.thinking == " an the");
  CHECK(seen.text == "hello Wait <think> Wait");
  CHECK(model.biased() == std::vector{false, true, false});
  const auto all = model.fake.submitted();
  for (const gen::Request& request : all) CHECK(request.grammar == all.front().grammar);
  CHECK(all.front().grammar);
}

TEST_CASE("hesitation: no generation goes on where the limit leaves no token to draw") {
  Hesitant model("the</think>hello");
  Request asked = Hesitant::request(true);
  asked.max_tokens = 2;
  const Seen& seen = model.run(asked);
  CHECK(seen.ends.at(0).reason == FinishReason::kLength);
  CHECK(model.biased() == std::vector{true});
}

TEST_CASE("hesitation: a model whose thinking or words cannot be told is warned of") {
  const auto codes = [](const text::ModelText& model, float penalty) {
    Harness harness;
    LocalService service(harness.fake, model, {.id = "m", .has_chat_template = true}, {});
    Request asked = Hesitant::request();
    asked.guards.hesitation_penalty = penalty;
    std::vector<std::string> out;
    for (const Warning& warning : service.warnings(asked)) {
      if (warning.code.starts_with("hesitation")) out.push_back(warning.message);
    }
    return out;
  };
  text::ModelText thoughtless = hesitant_model();
  thoughtless.thinking.reset();
  REQUIRE(codes(thoughtless, kPenalty).size() == 1);
  CHECK(codes(thoughtless, kPenalty)[0].find("marks no thinking") != std::string::npos);
  CHECK(codes(thoughtless, 0).empty());
  REQUIRE(codes(fixture_model(), kPenalty).size() == 1);
  CHECK(codes(fixture_model(), kPenalty)[0].find("vocabulary") != std::string::npos);
  CHECK(codes(hesitant_model(), kPenalty).empty());
}

}  // namespace
}  // namespace tandem::chat
