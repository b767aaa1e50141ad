#include "protocol/openai/truncation.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

namespace tandem::protocol::openai {
namespace {

/// A token for each letter of content, and one for each call.
Result<uint32_t> count_letters(const chat::Request& request) {
  size_t tokens = 0;
  for (const Json& message : std::get<chat::Conversation>(request.input).messages) {
    tokens += message.value("content", "").size();
    if (message.contains("tool_calls")) tokens += message["tool_calls"].size();
  }
  return static_cast<uint32_t>(tokens);
}

Json said(const char* role, const std::string& content) {
  return Json{{"role", role}, {"content", content}};
}

Json called(std::initializer_list<const char*> ids) {
  Json out = said("assistant", "");
  for (const char* id : ids) out["tool_calls"].push_back(Json{{"id", id}});
  return out;
}

Json result(const char* id, const std::string& content) {
  Json out = said("tool", content);
  out["tool_call_id"] = id;
  return out;
}

WireRequest wire_of(Json messages) {
  WireRequest wire;
  chat::Conversation talk;
  talk.messages = std::move(messages);
  wire.request.input = std::move(talk);
  return wire;
}

Json truncated(uint32_t context, const Json& messages, std::string* warning = nullptr) {
  WireRequest wire = wire_of(messages);
  truncate_to_fit(count_letters, context, wire);
  if (warning) *warning = wire.warnings.empty() ? "" : wire.warnings[0].message;
  return std::get<chat::Conversation>(wire.request.input).messages;
}

const std::string kTen(10, 'x');

TEST_CASE("truncation: what fits stays as it is") {
  const Json messages = Json::array({said("system", kTen), said("user", kTen)});
  std::string warning = "-";
  CHECK(truncated(21, messages, &warning) == messages);
  CHECK(warning.empty());
}

TEST_CASE("truncation: whole turns go, the oldest first, and the warning counts items") {
  Json messages = Json::array({said("system", kTen)});
  for (int turn = 0; turn < 5; ++turn) {
    messages.push_back(said("user", kTen + std::to_string(turn)));
    messages.push_back(said("assistant", kTen));
  }
  messages.push_back(said("user", "last"));
  std::string warning;
  // 80 with 20 for the answer: the system, two turns and the last question are 56.
  const Json left = truncated(80, messages, &warning);
  CHECK(left == Json::array({messages[0], messages[7], messages[8], messages[9], messages[10],
                             messages[11]}));
  CHECK(warning.find("the 6 oldest items") != std::string::npos);
  CHECK(warning.find("119 tokens") != std::string::npos);
}

TEST_CASE("truncation: of a long turn the oldest answers go, with the results of their calls") {
  Json messages =
      Json::array({said("developer", kTen), said("user", "old"), said("user", "do it")});
  for (const char* id : {"a", "b", "c"}) {
    messages.push_back(called({id}));
    messages.push_back(result(id, kTen));
  }
  CHECK(truncated(44, messages) ==
        Json::array({messages[0], messages[1], messages[2], messages[7], messages[8]}));
}

TEST_CASE("truncation: a result goes with its call, wherever it stands") {
  const Json messages =
      Json::array({said("user", kTen), called({"a", "b"}), result("a", kTen), said("user", "wait"),
                   result("b", kTen), called({"c"}), result("c", "ok")});
  CHECK(truncated(20, messages) == Json::array({messages[3], messages[5], messages[6]}));
}

TEST_CASE("truncation: what no cut makes fit is left to be refused") {
  const Json messages = Json::array(
      {said("user", kTen), said("assistant", kTen), said("user", std::string(100, 'x'))});
  std::string warning = "-";
  CHECK(truncated(50, messages, &warning) == messages);
  CHECK(warning.empty());
}

TEST_CASE("truncation: without room for the usual answer, a form that fits at all is taken") {
  const Json messages = Json::array(
      {said("user", kTen), said("assistant", kTen), said("user", std::string(95, 'x'))});
  CHECK(truncated(100, messages) == Json::array({messages[2]}));
}

TEST_CASE("truncation: of any conversation the end stays, no result without its call, in order") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Json messages = Json::array();
    if (random() % 2) messages.push_back(said("system", "s"));
    int ids = 0;
    for (size_t i = 0; i < 20; ++i) {
      switch (random() % 3) {
        case 0:
          messages.push_back(said("user", std::string(random() % 20, 'u')));
          break;
        case 1:
          messages.push_back(said("assistant", std::string(random() % 20, 'a')));
          break;
        default: {
          const std::string id = std::to_string(ids++);
          messages.push_back(called({id.c_str()}));
          if (random() % 4) messages.push_back(result(id.c_str(), std::string(9, 'r')));
        }
      }
    }
    Json before = messages;
    for (const Cut& cut : cuts_of(messages)) {
      const Json left = without(messages, cut);
      CHECK(left.size() < before.size());
      CHECK(left.back() == messages.back());
      std::set<std::string> calls;
      size_t at = 0;
      for (const Json& message : left) {
        while (at < messages.size() && messages[at] != message) ++at;
        if (message.contains("tool_calls")) calls.insert(message["tool_calls"][0]["id"]);
        if (message["role"] == "tool") CHECK(calls.contains(message["tool_call_id"]));
      }
      CHECK(at < messages.size());
      before = left;
    }
  }
}

TEST_CASE("truncation: a message is made of as many items as it has parts of an answer") {
  CHECK(items_in(said("user", "x")) == 1);
  CHECK(items_in(said("assistant", "")) == 1);
  CHECK(items_in(called({"a", "b"})) == 2);
  Json answer = called({"a"});
  answer["content"] = "x";
  answer["reasoning_content"] = "t";
  CHECK(items_in(answer) == 3);
}

}  // namespace
}  // namespace tandem::protocol::openai
