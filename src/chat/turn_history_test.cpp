// Which histories are shown as they were drawn, and which as the template writes them.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "chat/testdata/replay_model.h"
#include "replay/handle.h"

using namespace tandem;
using namespace tandem::chat;

namespace {

/// As Qwen3 has it: thinking is shown behind the last question only.
constexpr const char* kThinkingTemplate =
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content and loop.index0 > ns.last %}<think>\n{{ m.reasoning_content.strip() "
    "}}"
    "\n</think>\n\n{% endif %}{{ m.content.strip() }}"
    "{% for c in m.tool_calls or [] %}{% if m.content or not loop.first %}\n{% endif %}"
    "<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
    "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
    "{# tools #}";

ReplayModel thinking_model(std::shared_ptr<replay::Memory> memory = nullptr) {
  return ReplayModel({.chat_template = kThinkingTemplate}, std::move(memory));
}

const std::string kLook =
    "<think>\n I  must look \n</think>\n\nI look.  \n<tool_call>\n{\"name\":\"ls\",  "
    "\"arguments\": "
    "{\"path\": \"a\", \"n\": 1}}\n</tool_call>";

Conversation question() {
  Conversation talk;
  talk.messages = Json::parse(R"([{"role": "system", "content": "Be brief."},
                                  {"role": "user", "content": "What is in a?"}])");
  talk.tools = Json::parse(R"([{"type": "function", "function": {"name": "ls", "parameters": {
      "type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}}}])");
  return talk;
}

Json sent_back(const Seen& seen) {
  Json message{{"role", "assistant"}, {"content", seen.text}};
  if (!seen.thinking.empty()) message["reasoning_content"] = seen.thinking;
  Json calls = calls_seen(seen);
  for (Json& call : calls) {
    call["function"]["arguments"] = Json::parse(call["function"]["arguments"].get<std::string>());
  }
  if (!calls.empty()) message["tool_calls"] = calls;
  return message;
}

void add_results(Conversation& talk, const std::string& text) {
  const Json calls = talk.messages.back()["tool_calls"];
  for (const Json& call : calls) {
    talk.messages.push_back(
        Json{{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", text}});
  }
}

using Ids = std::vector<gen::TokenId>;

Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool begins(const Ids& whole, const Ids& start) {
  return whole.size() >= start.size() && std::equal(start.begin(), start.end(), whole.begin());
}

/// The prompt that the template makes of it by itself.
Ids plain_prompt(const ReplayModel& model, const Conversation& talk) {
  return *model.model.tokenizer->encode(*model.service.render(talk), false);
}

/// Tokens of which none is special.
Ids byte_by_byte(const ReplayModel& model, const std::string& text) {
  Ids ids;
  for (const char c : text) {
    for (gen::TokenId id = 0; id < 256; ++id) {
      if (model.model.tokenizer->bytes(id) == std::string_view(&c, 1)) ids.push_back(id);
    }
  }
  return ids;
}

/// What a client sees of the model's next reply.
Seen submitted(ReplayModel& model, const Conversation& talk) {
  Seen seen;
  Request request;
  request.id = "tricky";
  request.input = talk;
  REQUIRE(model.service.submit(request, [&seen](const Event& event) { seen.add(event); }));
  while (model.fake.step()) {
  }
  return seen;
}

/// A question, an answer with a call, its result; `edit` is what the client does meanwhile.
struct Loop {
  using Edit = std::function<void(Conversation&)>;

  explicit Loop(ReplayModel& model, const std::string& answer = kLook, const Edit& edit = {}) {
    talk = question();
    seen = model.say(talk, answer, "<|im_end|>");
    before = joined(model.prompt(), model.drawn);
    talk.messages.push_back(sent_back(seen));
    if (talk.messages.back().contains("tool_calls")) add_results(talk, "x.c");
    if (edit) edit(talk);
    model.say(talk, "y", "<|im_end|>");
    after = model.prompt();
  }

  Conversation talk;
  Seen seen;
  Ids before;  // the first prompt, and what was drawn
  Ids after;   // the second prompt
};

}  // namespace

TEST_CASE("replay: a prompt is the one before, what was drawn, and what is new") {
  ReplayModel model = thinking_model();
  const Loop loop(model);
  const std::string rest = "<|im_end|>\n<|im_start|>tool\nx.c<|im_end|>\n<|im_start|>assistant\n";
  CHECK(loop.after == joined(loop.before, *model.model.tokenizer->encode(rest, false)));
  CHECK(loop.after != plain_prompt(model, loop.talk));
  CHECK(model.memory->counts().spliced == 1);
  CHECK(model.memory->counts().tokens == model.spelled(kLook).size());
  Request counted;
  counted.input = loop.talk;
  CHECK(*model.service.count_prompt(counted) == loop.after.size());
  CHECK(model.memory->counts().spliced == 1);  // counting is no use
}

TEST_CASE("replay: an edited history is as the template writes it") {
  const Loop::Edit edits[] = {
      [](Conversation& talk) { talk.messages[2]["content"] = "I looked."; },
      [](Conversation& talk) { talk.messages[2]["reasoning_content"] = "Other."; },
      [](Conversation& talk) {
        talk.messages[2]["tool_calls"][0]["function"]["arguments"]["path"] = "b";
      },
      [](Conversation& talk) { talk.messages[2]["tool_calls"][0]["function"]["name"] = "rm"; },
      [](Conversation& talk) { talk.messages[2]["tool_calls"].erase(0); },
      // The same answer to another question, under another system text, with another tool.
      [](Conversation& talk) { talk.messages[1]["content"] = "What is in b?"; },
      [](Conversation& talk) { talk.messages[0]["content"] = "Be wordy."; },
      [](Conversation& talk) { talk.messages.erase(0); },
  };
  for (const Loop::Edit& edit : edits) {
    ReplayModel model = thinking_model();
    const Loop loop(model, kLook, edit);
    CAPTURE(model.text_of(loop.after));
    CHECK(loop.after == plain_prompt(model, loop.talk));
    CHECK(model.memory->counts().spliced == 0);
  }
}

TEST_CASE("replay: thinking that a client drops is put back where the template shows it") {
  ReplayModel model = thinking_model();
  const auto drop = [](Conversation& talk) { talk.messages[2].erase("reasoning_content"); };
  const Loop loop(model, kLook, drop);
  CHECK(begins(loop.after, loop.before));
  CHECK(model.memory->counts().thoughts == 1);
  // Also in another context, where the call's id tells which thought it was.
  const auto elsewhere = [](Conversation& talk) {
    talk.messages[2].erase("reasoning_content");
    talk.messages[0]["content"] = "Be wordy.";
  };
  const Loop moved(model, kLook, elsewhere);
  CHECK_FALSE(begins(moved.after, moved.before));
  CHECK(model.text_of(moved.after).find("<think>\nI  must look\n</think>\n\nI look.") !=
        std::string::npos);
}

TEST_CASE("replay: a thought is not put back into another conversation with the same words") {
  for (const char* system : {"Be brief.", "Be wordy."}) {
    ReplayModel model = thinking_model();
    const Loop loop(model, "<think>\n I  must look \n</think>\n\nIt is empty.",
                    [&](Conversation& talk) {
                      talk.messages[0]["content"] = system;
                      talk.messages[2].erase("reasoning_content");
                    });
    const bool is_same = std::string(system) == "Be brief.";
    CHECK(begins(loop.after, loop.before) == is_same);
    CHECK((model.text_of(loop.after).find("must look") != std::string::npos) == is_same);
    CHECK((loop.after == plain_prompt(model, loop.talk)) == !is_same);
    CHECK(model.memory->counts().thoughts == (is_same ? 1 : 0));
    CHECK(model.memory->counts().elsewhere == (is_same ? 0 : 1));
  }
}

TEST_CASE("replay: where the template drops thinking, prompts part there and no earlier") {
  ReplayModel model = thinking_model();
  Loop loop(model);
  loop.talk.messages.push_back(sent_back(model.say(loop.talk, "It has x.c.", "<|im_end|>")));
  loop.talk.messages.push_back(Json{{"role", "user"}, {"content", "And in b?"}});
  const Ids known = joined(model.prompt(), model.drawn);
  model.say(loop.talk, kLook, "<|im_end|>");
  const Ids after = model.prompt();
  CHECK(after == plain_prompt(model, loop.talk));
  REQUIRE(model.divergence);
  const size_t header = model.prompt().size();
  CHECK(header > 0);
  CHECK(model.divergence->message == 2);
  CHECK(model.divergence->role == "assistant");
  CHECK(model.divergence->known_tokens == known.size());
  const Ids shared(after.begin(), after.begin() + model.divergence->reusable_tokens);
  CHECK(model.text_of(shared).ends_with("<|im_start|>assistant\n"));
  // What is drawn from there comes back from there.
  const Ids before = joined(after, model.spelled(kLook));
  Conversation talk = loop.talk;
  Seen seen = model.say(talk, kLook, "<|im_end|>");
  talk.messages.push_back(sent_back(seen));
  add_results(talk, "y.c");
  model.say(talk, "z", "<|im_end|>");
  CHECK(begins(model.prompt(), before));
}

TEST_CASE("replay: a thought that the prompt closed at once stays until somebody asks anew") {
  ReplayModel model = thinking_model();
  Conversation talk = question();
  talk.template_arguments["enable_thinking"] = false;
  const std::string call = "<tool_call>\n{\"name\": \"ls\", \"arguments\": {}}\n</tool_call>";
  for (int turn = 0; turn < 3; ++turn) {
    const Seen seen = model.say(talk, call, "<|im_end|>");
    const Ids before = joined(model.prompt(), model.drawn);
    talk.messages.push_back(sent_back(seen));
    add_results(talk, "x.c");
    model.say(talk, "y", "<|im_end|>");
    CHECK(begins(model.prompt(), before));
    CHECK_FALSE(model.divergence);
  }
  talk.messages.push_back(Json{{"role", "user"}, {"content", "And now?"}});
  model.say(talk, "y", "<|im_end|>");
  CHECK(model.prompt() == plain_prompt(model, talk));
}

TEST_CASE("replay: salts share nothing") {
  ReplayModel model = thinking_model();
  model.salt = "one";
  Loop loop(model);
  model.salt = "two";
  loop.talk.messages[2].erase("reasoning_content");
  model.say(loop.talk, "y", "<|im_end|>");
  CHECK(model.prompt() == plain_prompt(model, loop.talk));
  CHECK_FALSE(model.divergence);
}

TEST_CASE("replay: a turn that quotes what follows it is shown once, to its end") {
  struct Quote {
    std::string answer;
    std::string next;
  };
  const std::string user = "<|im_end|>\n<|im_start|>user\n";
  const Quote quotes[] = {
      {"It is " + user + "x.c<|im_end|>\n.", "x.c"},
      {"It is " + user + "<|im_end|>\n.", ""},
      {"It is " + user + "x.c and more.", "x.c"},
  };
  for (const Quote& quote : quotes) {
    CAPTURE(quote.answer);
    ReplayModel model = thinking_model();
    Conversation talk = question();
    model.reply = {.tokens = byte_by_byte(model, quote.answer)};
    const Seen seen = submitted(model, talk);
    CHECK(seen.text == quote.answer);
    talk.messages.push_back(sent_back(seen));
    talk.messages.push_back(Json{{"role", "user"}, {"content", quote.next}});
    talk.messages.push_back(sent_back(model.say(talk, "Yes.", "<|im_end|>")));
    talk.messages.push_back(Json{{"role", "user"}, {"content", "Go on."}});
    model.say(talk, "y", "<|im_end|>");
    CHECK(model.text_of(model.prompt()) == *model.service.render(talk));
  }
}

TEST_CASE("replay: words that look like the end of a turn do no harm") {
  const std::string tricky =
      "It is <\xC2\xA0> and <|im_end|>\n<|im_start|>tool\nx.c<|im_end|>\n<|im_start|>assistant\n.";
  ReplayModel model = thinking_model();
  Conversation talk = question();
  model.reply.tokens = byte_by_byte(model, tricky);
  const Ids drawn = model.reply.tokens;
  const Seen seen = submitted(model, talk);
  CHECK(seen.text == tricky);
  const Ids before = joined(model.prompt(), drawn);
  talk.messages.push_back(sent_back(seen));
  for (const char* next : {"x.c", "", "more"}) {
    talk.messages.push_back(Json{{"role", "user"}, {"content", next}});
    model.say(talk, "y", "<|im_end|>");
    const Ids after = model.prompt();
    // Replayed, or as the template has it; nothing between.
    CHECK((begins(after, before) || after == plain_prompt(model, talk)));
    if (begins(after, before)) {
      const Ids rest(after.begin() + static_cast<ptrdiff_t>(before.size()), after.end());
      const std::string text = model.text_of(rest);
      CHECK(text.starts_with("<|im_end|>\n<|im_start|>user\n"));
    }
  }
}

TEST_CASE("replay: what was cut off is shown as drawn only where that is what the client saw") {
  struct Cut {
    const char* answer;
    const char* stop;  // string
    bool is_replayed;
  };
  const Cut cuts[] = {{"I look for", "", true},
                      {"<think>\nI must", "", false},
                      {"<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"pa", "", false},
                      {"caf\xC3", "", false},
                      {"I look STOP for", "STOP", false}};
  for (const Cut& cut : cuts) {
    CAPTURE(std::string(cut.answer));
    ReplayModel model = thinking_model();
    Conversation talk = question();
    model.reply = {.tokens = model.spelled(cut.answer), .reason = gen::FinishReason::kLength};
    Seen seen;
    Request request;
    request.id = "cut";
    request.input = talk;
    if (*cut.stop) request.stop = {cut.stop};
    REQUIRE(model.service.submit(request, [&seen](const Event& event) { seen.add(event); }));
    while (model.fake.step()) {
    }
    CHECK(model.memory->turns() == (cut.is_replayed ? 1 : 0));
  }
}

TEST_CASE("replay: what is drawn behind the calls of an answer is none of it") {
  ReplayModel model = thinking_model();
  const std::string said = kLook + "\n\nAnd now I go on and on";
  const Loop loop(model, said);
  const Ids whole = model.spelled(kLook);
  const Ids shown(loop.before.end() - static_cast<ptrdiff_t>(model.spelled(said).size()),
                  loop.before.end());
  const size_t first = loop.before.size() - shown.size();
  REQUIRE(loop.after.size() > first + whole.size());
  CHECK(begins(Ids(loop.after.begin() + static_cast<ptrdiff_t>(first), loop.after.end()), whole));
  CHECK(model.text_of(loop.after).find("And now") == std::string::npos);
  CHECK(model.text_of(loop.after).find("</tool_call><|im_end|>") != std::string::npos);
}

TEST_CASE("replay: calls that were cut off behind the first are not remembered") {
  ReplayModel model = thinking_model();
  Conversation talk = question();
  talk.parallel_calls = false;
  model.say(talk, kLook, "<|im_end|>");
  CHECK(model.memory->turns() == 0);
  model.say(talk, "None.", "<|im_end|>");
  CHECK(model.memory->turns() == 1);
}

TEST_CASE("replay: a cancelled answer is not remembered") {
  ReplayModel model = thinking_model();
  model.reply = {.tokens = model.spelled("I look."), .hangs = true};
  Request request;
  request.id = "gone";
  request.input = question();
  REQUIRE(model.service.submit(request, [](const Event&) {}));
  while (model.fake.step()) {
  }
  CHECK(model.service.cancel("gone"));
  while (model.fake.step()) {
  }
  CHECK(model.memory->turns() == 0);
}

TEST_CASE("replay: of several choices, the one that comes back is shown") {
  ReplayModel model = thinking_model();
  std::map<uint32_t, Seen> seen;
  std::vector<std::string> says = {"One.", "Two.", "Three."};
  gen::Fake fake(
      {.vocab = 400, .max_context = 4096},
      [&](const gen::Request& request) {
        return gen::FakeReply{.tokens = model.spelled(says[request.sampling.choice])};
      },
      gen::Fake::Delivery::kOnDemand);
  LocalService service(fake, model.model, {.id = "m", .has_chat_template = true},
                       {.memory = model.memory});
  Request request;
  request.id = "r";
  request.choices = 3;
  request.input = question();
  REQUIRE(service.submit(request, [&](const Event& event) { seen[event.choice].add(event); }));
  while (fake.step()) {
  }
  CHECK(model.memory->turns() == 3);
  for (uint32_t choice = 0; choice < 3; ++choice) {
    Conversation talk = question();
    talk.messages.push_back(sent_back(seen[choice]));
    talk.messages.push_back(Json{{"role", "user"}, {"content", "Go on."}});
    model.say(talk, "y", "<|im_end|>");
    CHECK(begins(model.prompt(),
                 joined(fake.submitted()[choice].prompt, model.spelled(says[choice]))));
  }
}

TEST_CASE("replay: a handle finds a turn, its thought left out; under another key it is nothing") {
  for (const char* key : {"key", "other"}) {
    ReplayModel model = thinking_model();
    const Loop loop(model, "<think>\n I  must look \n</think>\n\nIt is empty.",
                    [&](Conversation& talk) {
                      talk.messages[2].erase("reasoning_content");
                      talk.messages[2][kTurnHandle] = replay::seal(key, "", "r1");
                      // So that only the handle finds it.
                      talk.messages.insert(talk.messages.begin() + 1,
                                           Json{{"role", "user"}, {"content", "Hi."}});
                      talk.messages.insert(talk.messages.begin() + 2,
                                           Json{{"role", "assistant"}, {"content", "Ho."}});
                    });
    const std::string shown = model.text_of(loop.after);
    CHECK((shown.find("I  must look") != std::string::npos) == (std::string(key) == "key"));
    CHECK(shown.find("turn_handle") == std::string::npos);
    Request asked;
    asked.input = loop.talk;
    const auto warnings = model.service.warnings(asked);
    CHECK(std::ranges::count(warnings, "thought_not_found", &Warning::code) ==
          (std::string(key) == "key" ? 0 : 1));
  }
}

TEST_CASE("replay: a message that the template shows in part only is as the template shows it") {
  // Calls are left out of what this template shows of text; here the thought is.
  ReplayModel model({.chat_template =
                         "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
                         "<|im_end|>\n{% endfor %}<|im_start|>assistant\n{# <think></think> #}"});
  const Loop loop(model, "<think>\nI must look\n</think>\n\nIt is empty.");
  CHECK(loop.after == plain_prompt(model, loop.talk));
  CHECK(model.memory->counts().not_shown == 1);
}

TEST_CASE("replay: what outlives the server began with its request, not with its answer's end") {
  struct Puts final : replay::Backing {
    explicit Puts(std::vector<int64_t>& put) : begins(put) {}
    void put(const std::string&, const std::string&, std::string, int64_t began) override {
      begins.push_back(began);
    }
    std::optional<std::string> get(const std::string&, const std::string&) override { return {}; }
    std::vector<int64_t>& begins;
  };
  const SteadyClock clock;
  std::vector<int64_t> begins;
  ReplayModel model = thinking_model(std::make_shared<replay::Memory>(
      replay::MemoryLimits{}, clock, std::make_unique<Puts>(begins)));
  model.reply = {.tokens = model.spelled(kLook)};
  Request request;
  request.id = "r";
  request.gives_handle = true;
  request.input = question();
  const int64_t before = unix_microseconds();
  REQUIRE(model.service.submit(request, [](const Event&) {}));
  const int64_t after = unix_microseconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  while (model.fake.step()) {
  }
  REQUIRE(begins.size() == 3);  // under its own key, its words' and its call's
  for (const int64_t began : begins) {
    CHECK(began >= before);
    CHECK(began <= after);
  }
}

TEST_CASE("replay: without a memory nothing changes") {
  ReplayModel model = thinking_model();
  LocalService service(model.fake, model.model, {.id = "m", .has_chat_template = true}, {});
  const Loop loop(model);
  Request request;
  request.input = loop.talk;
  CHECK(*service.count_prompt(request) == plain_prompt(model, loop.talk).size());
}
