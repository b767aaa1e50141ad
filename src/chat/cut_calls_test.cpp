// Answers that are cut off in a call: nothing of its markup is text, and what was sent is closed.
#include <doctest/doctest.h>

#include <string>

#include "chat/model_dialect.h"
#include "chat/testdata/replay_model.h"
#include "dialect/layout.h"

using namespace tandem;
using namespace tandem::chat;

namespace {

Conversation cut_talk(bool is_required) {
  Conversation talk;
  talk.messages = Json::parse(R"([{"role": "user", "content": "go"}])");
  talk.tools = Json::parse(R"([{"type": "function", "function": {"name": "put", "strict": true,
    "parameters": {"type": "object", "additionalProperties": false,
      "properties": {"kind": {"enum": ["a", "b"]}, "path": {"type": "string"}},
      "required": ["kind", "path"]}}}])");
  talk.calls = {.is_required = is_required, .field = "tool_choice"};
  return talk;
}

/// As the model writes it, behind the prompt and without the end of the answer.
std::string cut_call(const dialect::Layout& layout) {
  const dialect::Call call{.name = "put",
                           .id = layout.id.empty() ? "abcdefghi" : "",
                           .arguments = {{"kind", "a"}, {"path", "/tmp/a"}}};
  std::string text = render(layout, {&call, 1});
  if (text.starts_with(layout.in_prompt)) text.erase(0, layout.in_prompt.size());
  if (text.ends_with(layout.at_end)) text.resize(text.size() - layout.at_end.size());
  return text;
}

struct CutCall {
  std::string arguments;
  int started = 0;
  int ended = 0;
  int whole = 0;
};

CutCall call_of(const Seen& seen) {
  CutCall out;
  for (const Event& event : seen.events) {
    if (std::holds_alternative<CallStarted>(event.body)) ++out.started;
    if (const auto* part = std::get_if<CallArguments>(&event.body)) out.arguments += part->json;
    if (const auto* ended = std::get_if<CallEnded>(&event.body)) {
      ++out.ended;
      out.whole += ended->is_complete ? 1 : 0;
    }
  }
  return out;
}

/// From how many bytes on a call is certain to be one, where the model may also write text.
size_t certain_from(const dialect::Dialect& dialect) {
  if (dialect.syntax->owns_answer()) return std::string(" to=").size();
  size_t size = 0;
  const std::string begin = dialect.layout.before + dialect.layout.call;
  for (const std::string& start : dialect.syntax->starts()) {
    if (begin.starts_with(start)) size = std::max(size, start.size());
  }
  return size == 0 ? std::string::npos : size;
}

ReplayModel model_of(const dialect::Dialect& dialect) {
  const auto words = special_words(dialect.layout.before + dialect.layout.call +
                                   dialect.layout.after + dialect.layout.parameter);
  return ReplayModel({.chat_template = kChatTemplate, .dialect = dialect.name, .words = words});
}

void check_cut(const Seen& seen, bool is_text_allowed) {
  REQUIRE(seen.ends.size() == 1);
  const End& end = seen.ends[0];
  const CutCall call = call_of(seen);
  if (call.whole == 0) CHECK(end.reason == FinishReason::kLength);  // a section may have ended
  CHECK(call.started == call.ended);
  if (!is_text_allowed) CHECK(seen.text.empty());
  if (call.started > 0) CHECK(Json::parse(call.arguments, nullptr, false).is_object());
  if (call.whole == 0 && !is_text_allowed) CHECK(end.cut_in_call);
  if (call.whole == 1) CHECK_FALSE(end.cut_in_call);
}

}  // namespace

TEST_CASE("cut calls: a forced one that the limit cuts off shows no markup, and says so") {
  for (const dialect::Dialect& dialect : dialect::all()) {
    CAPTURE(dialect.name);
    ReplayModel model = model_of(dialect);
    const std::string whole = cut_call(dialect.layout);
    for (size_t size = 1; size <= whole.size(); ++size) {
      const std::string part = whole.substr(0, size);
      if ((static_cast<unsigned char>(whole[size % whole.size()]) & 0xC0) == 0x80) continue;
      CAPTURE(part);
      const Seen seen = model.say(cut_talk(true), part, "");
      REQUIRE_MESSAGE(model.refusal.empty(), model.refusal);
      check_cut(seen, false);
    }
  }
}

TEST_CASE("cut calls: one that the model chose shows no markup from its marker on") {
  for (const dialect::Dialect& dialect : dialect::all()) {
    CAPTURE(dialect.name);
    ReplayModel model = model_of(dialect);
    const std::string whole = cut_call(dialect.layout);
    const size_t from = certain_from(dialect);
    for (size_t size = 1; size <= whole.size(); ++size) {
      const std::string part = whole.substr(0, size);
      if ((static_cast<unsigned char>(whole[size % whole.size()]) & 0xC0) == 0x80) continue;
      CAPTURE(part);
      const Seen seen = model.say(cut_talk(false), part, "");
      REQUIRE_MESSAGE(model.refusal.empty(), model.refusal);
      check_cut(seen, size < from);
    }
  }
}

TEST_CASE("cut calls: what an answer that ends by itself began as a call is its text") {
  const dialect::Dialect& dialect = *dialect::find("json_tools");
  ReplayModel model = model_of(dialect);
  const Seen seen = model.say(cut_talk(false), "<tool_call>\n{\"name\": \"pu", "<|im_end|>");
  REQUIRE(seen.ends.size() == 1);
  CHECK(seen.ends[0].reason == FinishReason::kStop);
  CHECK_FALSE(seen.ends[0].cut_in_call);
  CHECK(seen.text.find("{\"name\": \"pu") != std::string::npos);
}
