// What a client sends back of an answer is shown to the model as the tokens that it drew: for every
// dialect, and for published templates where they lie beside the repository.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "chat/testdata/replay_model.h"
#include "dialect/json_text.h"
#include "dialect/layout.h"

namespace fs = std::filesystem;
using namespace tandem;
using namespace tandem::chat;

namespace {

const Json kTools = Json::parse(R"([
  {"type": "function", "function": {"name": "edit", "description": "Edits.", "parameters": {
    "type": "object", "properties": {
      "file_path": {"type": "string", "description": "a"},
      "old_string": {"type": "string", "description": "b"},
      "new_string": {"type": "string", "description": "c"},
      "replace_all": {"type": "boolean", "default": false, "description": "d"}},
    "required": ["file_path"]}}},
  {"type": "function", "function": {"name": "ls", "description": "Lists.", "parameters": {
    "type": "object", "properties": {"path": {"type": "string", "description": "e"}},
    "required": ["path"]}}}])");

/// What clients do to an answer before they send it back.
enum class Client : uint8_t { kClaude, kCodex, kOpencode, kPi, kQwen, kDropsThinking };
constexpr Client kClients[] = {Client::kClaude, Client::kCodex, Client::kOpencode,
                               Client::kPi,     Client::kQwen,  Client::kDropsThinking};

std::string trimmed_copy(const std::string& text) { return std::string(dialect::trimmed(text)); }

/// Keys in the schema's order, with its defaults, as Claude Code writes input anew.
Json in_schema_order(const std::string& name, const Json& arguments) {
  Json out = Json::object();
  for (const Json& tool : kTools) {
    if (tool["function"]["name"] != name) continue;
    for (const auto& [key, schema] : tool["function"]["parameters"]["properties"].items()) {
      if (arguments.contains(key)) {
        out[key] = arguments[key];
      } else if (schema.contains("default")) {
        out[key] = schema["default"];
      }
    }
  }
  return out;
}

Json echo(const Seen& seen, Client client) {
  Json message{{"role", "assistant"}, {"content", seen.text}};
  std::string thinking = seen.thinking;
  if (client == Client::kQwen) {
    if (thinking.empty()) message["content"] = trimmed_copy(seen.text);
    thinking = trimmed_copy(thinking);
  }
  if (client == Client::kPi && dialect::trimmed(seen.text).empty()) message["content"] = nullptr;
  if (client == Client::kDropsThinking) thinking.clear();
  if (!thinking.empty()) message["reasoning_content"] = thinking;
  Json calls = calls_seen(seen);
  for (Json& call : calls) {
    Json& function = call["function"];
    const auto given = function["arguments"].get<std::string>();
    const Json parsed = Json::parse(given.empty() ? "{}" : given);
    function["arguments"] =
        client == Client::kClaude ? in_schema_order(function["name"], parsed) : parsed;
  }
  if (!calls.empty()) message["tool_calls"] = calls;
  return message;
}

Json result_of(const Json& call, const std::string& text) {
  return {{"role", "tool"},
          {"name", call["function"]["name"]},
          {"tool_call_id", call["id"]},
          {"content", text}};
}

Conversation opening_talk() {
  Conversation talk;
  talk.messages = Json::parse(R"([{"role": "user", "content": "Rename a to b in x.c."}])");
  talk.tools = kTools;
  return talk;
}

struct Subject {
  std::string name;
  ReplayModelParts parts;
  std::string end_of_calls = "<|im_end|>";
  bool drops_thinking = false;  // even in an agent's loop
};

/// What the model says: a thought, a word, a call of `edit` or `ls`, in its own spelling.
std::string answer(const ReplayModel& model,
                   const dialect::Dialect& dialect,
                   const Subject& subject,
                   int turn,
                   bool thinks) {
  const dialect::Layout& layout = dialect.layout;
  const std::string thought = fmt::format("I must  look,\n\n turn {}.", turn);
  Json arguments{{"new_string", " b\n"}, {"old_string", "a \"q\""}, {"file_path", "x.c"}};
  if (turn % 2 == 1) arguments = Json{{"path", "src/dir"}};
  std::vector<dialect::Call> calls = {
      {.name = turn % 2 == 1 ? "ls" : "edit", .arguments = arguments}};
  if (dialect.layout.id_pattern == "[a-zA-Z0-9]{9}") calls[0].id = fmt::format("abcdefg0{}", turn);
  std::string call = render(layout, calls);
  if (call.ends_with(subject.end_of_calls)) call.resize(call.size() - subject.end_of_calls.size());
  if (dialect.name == "gpt_oss") {
    std::string out;
    if (thinks) out = "<|channel|>analysis<|message|>" + thought + "<|end|><|start|>assistant";
    return out + call.substr(std::string("<|start|>assistant").size());
  }
  std::string out;
  if (thinks && model.model.thinking) {
    const text::ThinkingMarkers& markers = *model.model.thinking;
    const auto last = model.prompt();
    const std::string shown = model.text_of(last);
    if (!ends_in_thinking(shown, markers, false)) out += markers.start + "\n";
    out += thought + "\n" + markers.end + "\n\n";
  }
  return out + call;
}

/// An agent's loop of three calls. Each prompt goes on with the one before and what was drawn from
/// it; where the template drops thinking, it does so up to the thought.
void check_loop(const Subject& subject, Client client, bool thinks) {
  ReplayModel model(subject.parts);
  const dialect::Dialect& dialect = dialect_of(model.model, subject.parts.dialect);
  CAPTURE(subject.name);
  CAPTURE(static_cast<int>(client));
  CAPTURE(thinks);
  Conversation talk = opening_talk();
  if (!thinks) talk.template_arguments["enable_thinking"] = false;
  model.say(talk, "x", "");  // for its prompt
  for (int turn = 0; turn < 3; ++turn) {
    CAPTURE(turn);
    const Seen seen =
        model.say(talk, answer(model, dialect, subject, turn, thinks), subject.end_of_calls);
    REQUIRE_MESSAGE(model.refusal.empty(), model.refusal);
    auto before = model.prompt();
    const size_t kept =
        before.size() -
        (thinks && subject.drops_thinking
             ? model.spelled(std::string(opening_of(model.text_of(before), model.model.thinking)))
                   .size()
             : 0);
    before.insert(before.end(), model.drawn.begin(), model.drawn.end());
    if (thinks && subject.drops_thinking) before.resize(kept);
    const Json message = echo(seen, client);
    REQUIRE(message.contains("tool_calls"));
    talk.messages.push_back(message);
    for (const Json& call : message["tool_calls"]) {
      talk.messages.push_back(result_of(call, fmt::format("done {}", turn)));
    }
    model.say(talk, "x", "");
    REQUIRE_MESSAGE(model.refusal.empty(), model.refusal);
    const auto after = model.prompt();
    CAPTURE(model.text_of(before));
    CAPTURE(model.text_of(after));
    REQUIRE(after.size() > before.size());
    CHECK(std::equal(before.begin(), before.end(), after.begin()));
    CHECK(model.divergence.has_value() == (thinks && subject.drops_thinking));
  }
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The end-of-text tokens of published models; calls end with the last.
const std::vector<std::pair<std::string, std::vector<std::string>>> kEnds = {
    {"gpt-oss", {"<|return|>", "<|call|>"}},
    {"istral", {"</s>"}},
    {"deepseek", {"<｜end▁of▁sentence｜>"}},
    {"GLM", {"<|endoftext|>", "<|user|>", "<|observation|>"}},
    {"lama-3", {"<|eom_id|>", "<|eot_id|>"}},
    {"gemma-4", {"<turn|>", "<|tool_response>"}},
    {"gemma4", {"<turn|>", "<|tool_response>"}},
    {"gemma-2", {"<end_of_turn>"}},
    {"MiniMax", {"[e~["}},
    {"Seed", {"<seed:eos>"}},
    {"granite", {"<|end_of_text|>"}},
    {"ohere", {"<|END_OF_TURN_TOKEN|>"}},
    {"Phi", {"<|end|>"}},
};

Subject published(const std::string& name, std::string source) {
  Subject subject{.name = name, .parts = {.chat_template = std::move(source)}};
  for (const auto& [part, ends] : kEnds) {
    if (name.find(part) == std::string::npos) continue;
    subject.parts.eos = ends;
    subject.end_of_calls = ends.back();
  }
  for (const char* drops : {"Qwen-QwQ", "R1-Distill", "deepseek-r1", "DeepSeek-V3.1", "granite"}) {
    subject.drops_thinking |= name.find(drops) != std::string::npos;
  }
  return subject;
}

/// Templates that do not show an agent's loop in the way they ask for its next answer.
bool shows_no_loop(const std::string& name) {
  return name == "Apertus-8B-Instruct";  // no header where an answer goes on behind a result
}

const fs::path kPublished = fs::path(TANDEM_SOURCE_DIR) / "../shared/golden/templates";

}  // namespace

TEST_CASE("replay: in every dialect a turn comes back as it was drawn") {
  constexpr const char* kPlain =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n"
      "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content | trim }}\n</think>\n\n{% endif "
      "%}"
      "{{ m.content | trim }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n"
      "{% if open_thinking %}<think>\n{% endif %}{% endif %}";
  for (const dialect::Dialect& dialect : dialect::all()) {
    for (const bool opens : {false, true}) {
      const auto words = special_words(dialect.layout.before + dialect.layout.call +
                                       dialect.layout.after + dialect.layout.parameter);
      Subject subject{.name = dialect.name,
                      .parts = {.chat_template = kPlain,
                                .dialect = dialect.name,
                                .words = words,
                                .template_arguments = {{"open_thinking", opens}}},
                      .end_of_calls = "<|im_end|>"};
      for (const Client client : kClients) check_loop(subject, client, opens);
    }
  }
}

TEST_CASE("replay: with published templates a turn comes back as it was drawn") {
  if (!fs::exists(kPublished)) {
    MESSAGE("skipped: no published templates beside the repository");
    return;
  }
  size_t checked = 0;
  for (const auto& entry : fs::directory_iterator(kPublished)) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() != ".jinja" || shows_no_loop(name)) continue;
    Subject subject = published(name, read_text(entry.path()));
    for (const bool thinks : {false, true}) {
      // Its prompts always open a thought.
      if (!thinks && name == "Qwen-QwQ-32B") continue;
      for (const Client client : kClients) check_loop(subject, client, thinks);
    }
    ++checked;
  }
  CHECK(checked > 35);
}
