#include "replay/turn.h"

#include <doctest/doctest.h>

#include "replay/handle.h"
#include "replay/known_prompts.h"
#include "replay/lineage.h"

namespace tandem::replay {
namespace {

const dialect::Tools& tools() {
  static const Json list = Json::parse(R"([{"type": "function", "function": {"name": "edit",
    "parameters": {"type": "object", "properties": {
      "path": {"type": "string"}, "all": {"type": "boolean", "default": false},
      "at": {"type": "object", "properties": {"line": {"type": "integer"},
                                              "end": {"type": "integer", "default": 1}}}}}}}])");
  static const dialect::Tools known(list);
  return known;
}

Turn a_turn() {
  Turn turn;
  turn.text = "\n\nI look. ";
  turn.thinking = " hm\n";
  turn.calls = {{.id = "c1",
                 .name = "edit",
                 .arguments = R"({"path": "a", "at": {"line": 3}, "n": [1, {"x": null}]})"}};
  return turn;
}

bool is_taken(const char* message) { return is_echo(a_turn(), Json::parse(message), tools()); }

}  // namespace

TEST_CASE("turn: a message is its echo whatever clients do to it") {
  CHECK(is_echo(a_turn(), message_of(a_turn()), tools()));
  // Trimmed, without thinking; keys in another order, with defaults.
  CHECK(is_taken(R"({"role": "assistant", "content": "I look.", "tool_calls": [{"id": "c1",
    "function": {"name": "edit", "arguments": {"all": false, "n": [1.0, {"x": null}],
                 "at": {"end": 1, "line": 3}, "path": "a"}}}]})"));
  // Without an id, as invented by no client that had one.
  CHECK(is_taken(R"({"content": " I look.\n", "reasoning_content": "hm", "tool_calls": [
    {"function": {"name": "edit",
                  "arguments": {"path": "a", "at": {"line": 3}, "n": [1, {"x": null}]}}}]})"));
}

TEST_CASE("turn: an edited message is none") {
  const char* edited[] = {
      R"({"content": "I look!", "tool_calls": [CALL]})",
      R"({"content": "I  look.", "tool_calls": [CALL]})",
      R"({"content": "I look.", "reasoning_content": "other", "tool_calls": [CALL]})",
      R"({"content": "I look."})",
      R"({"content": "I look.", "tool_calls": [CALL, CALL]})",
      R"({"content": "I look.", "tool_calls": [{"id": "c2", "function": {"name": "edit", ARGS}}]})",
      R"({"content": "I look.", "tool_calls": [{"id": "c1", "function": {"name": "ls", ARGS}}]})",
      R"({"content": "I look.", "tool_calls": [{"id": "c1", "function": {"name": "edit",
          "arguments": {"path": "b", "at": {"line": 3}, "n": [1, {"x": null}]}}}]})",
      R"({"content": "I look.", "tool_calls": [{"id": "c1", "function": {"name": "edit",
          "arguments": {"path": "a", "at": {"line": 3}, "n": [1, {"x": null}], "all": true}}}]})",
      R"({"content": "I look.", "tool_calls": [{"id": "c1", "function": {"name": "edit",
          "arguments": {"path": "a", "at": {"line": 3}, "n": [1, {"x": null}], "new": false}}}]})",
      R"({"content": "I look.", "tool_calls": [{"id": "c1", "function": {"name": "edit",
          "arguments": {"at": {"line": 3}, "n": [1, {"x": null}]}}}]})",
      R"({"content": "I look.", "tool_calls": [{"id": "c1", "function": {"name": "edit",
          "arguments": {"path": "a", "at": {"line": 3}, "n": [{"x": null}, 1]}}}]})",
      R"({"content": "I look.", "tool_calls": [{"id": "c1", "function": {"name": "edit",
          "arguments": "{"}}]})",
      R"({"content": "I look.", "tool_calls": ["c1"]})"};
  const std::string arguments =
      R"("arguments": {"path": "a", "at": {"line": 3}, "n": [1, {"x": null}]})";
  const std::string call = R"({"id": "c1", "function": {"name": "edit", )" + arguments + "}}";
  for (std::string message : edited) {
    for (const auto& [name, text] : {std::pair{"CALL", call}, std::pair{"ARGS", arguments}}) {
      for (size_t at = 0; (at = message.find(name)) != std::string::npos;)
        message.replace(at, 4, text);
    }
    CAPTURE(message);
    CHECK_FALSE(is_taken(message.c_str()));
  }
}

TEST_CASE("turn: bytes and back") {
  Turn turn = a_turn();
  turn.id = "resp_1#2";
  turn.tokens = {0, 1, 151'936, 2'000'000};
  turn.text += std::string("\0\xFF", 2);
  CHECK(decode(encode(turn)) == turn);
  CHECK_FALSE(decode(""));
  CHECK_FALSE(decode("\x93\x01\x02\x03"));
}

TEST_CASE("lineage: what clients rewrite makes no other key, what was said does") {
  const auto key = [](const char* before, const char* message) {
    Lineage lineage;
    for (const Json& one : Json::parse(before)) lineage.add(one);
    return lineage.key_of(Json::parse(message));
  };
  const std::string one = key(R"([{"role": "system", "content": "A"},
                                  {"role": "user", "content": "hi"}])",
                              R"({"role": "assistant", "content": "x"})");
  CHECK(one == key(R"([{"role": "system", "content": "other day"},
                       {"role": "user", "content": " hi\n"}])",
                   R"({"role": "assistant", "content": "x\n", "reasoning_content": "t"})"));
  CHECK(one !=
        key(R"([{"role": "user", "content": "ho"}])", R"({"role": "assistant", "content": "x"})"));
  CHECK(one !=
        key(R"([{"role": "user", "content": "hi"}])", R"({"role": "assistant", "content": "y"})"));
  CHECK(one != key(R"([{"role": "user", "content": "hi"}])",
                   R"({"role": "assistant", "content": "x", "tool_calls": [
                      {"id": "1", "function": {"name": "f"}}]})"));
}

TEST_CASE("handle: it opens under its key and salt alone") {
  const std::string handle = seal("key", "salt", "msg_1.2");
  CHECK(unseal("key", "salt", handle) == "msg_1.2");
  CHECK_FALSE(unseal("kez", "salt", handle));
  CHECK_FALSE(unseal("key", "", handle));
  CHECK_FALSE(unseal("", "salt", handle));
  CHECK(seal("key", "a", "b") != seal("key", "ab", ""));
  for (size_t i = 0; i < handle.size(); ++i) {
    std::string changed = handle;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    CHECK_FALSE(unseal("key", "salt", changed));
    CHECK_FALSE(unseal("key", "salt", handle.substr(0, i)));
  }
  for (const char* other : {"", "tandem1.", "tandem1..", "ErUBCkYI", "tandem1.msg_1"}) {
    CHECK_FALSE(unseal("key", "salt", other));
  }
}

TEST_CASE("known prompts: a divergence is the first token that differs from the closest one") {
  KnownPrompts known({.per_owner = 2, .max_prompts = 8, .max_tokens = 100});
  using Ids = std::vector<gen::TokenId>;
  auto first = known.add("a", {1, 2, 3});
  CHECK_FALSE(first.divergence);
  known.answered(first.ticket, {4, 5});
  CHECK_FALSE(known.add("a", Ids{1, 2, 3, 4, 5, 6}).divergence);  // goes on
  CHECK_FALSE(known.add("a", Ids{1, 2, 3, 4}).divergence);        // is known
  const auto left = known.add("a", Ids{1, 2, 3, 9, 5, 6, 7});
  REQUIRE(left.divergence);
  CHECK(left.divergence->token == 3);
  CHECK_FALSE(known.add("b", Ids{9, 9}).divergence);  // nothing is known of it
  REQUIRE(known.add("a", Ids{8}).divergence);
  CHECK(known.add("a", Ids{7}).divergence->token == 0);
  // Only two of each are kept: those before are not known any more.
  CHECK(known.add("a", Ids{1, 2, 3, 9, 5}).divergence->token == 0);
  // Bounded in all, and an answer to one that is gone is nothing.
  const auto large = known.add("c", Ids(90, 1));
  known.add("d", Ids(50, 2));
  known.answered(large.ticket, {1});
  CHECK_FALSE(known.add("c", Ids{2}).divergence);
}

}  // namespace tandem::replay
