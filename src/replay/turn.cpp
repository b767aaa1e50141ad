#include "replay/turn.h"

#include <algorithm>
#include <utility>

#include "dialect/json_text.h"

namespace tandem::replay {
namespace {

using dialect::trimmed;

constexpr int kVersion = 2;

std::string_view string_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

bool same_value(const Json& drawn, const Json& sent, const dialect::Schema& schema);

/// A member that only the client's object has: the schema's default.
bool is_default(const Json& value, const dialect::Schema& schema) {
  const Json* place = schema.json();
  if (place == nullptr || !place->is_object()) return false;
  const auto standard = place->find("default");
  return standard != place->end() && same_value(*standard, value, {});
}

bool same_object(const Json& drawn, const Json& sent, const dialect::Schema& schema) {
  for (const auto& [name, value] : drawn.items()) {
    const auto other = sent.find(name);
    if (other == sent.end() || !same_value(value, *other, schema.property(name))) return false;
  }
  for (const auto& [name, value] : sent.items()) {
    if (!drawn.contains(name) && !is_default(value, schema.property(name))) return false;
  }
  return true;
}

/// Equal but for the order of keys and for defaults that were filled in.
bool same_value(const Json& drawn, const Json& sent, const dialect::Schema& schema) {
  if (drawn.is_object() && sent.is_object()) return same_object(drawn, sent, schema);
  if (!drawn.is_array() || !sent.is_array()) return drawn == sent;
  if (drawn.size() != sent.size()) return false;
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (!same_value(drawn[i], sent[i], schema.items())) return false;
  }
  return true;
}

Json parsed_arguments(const std::string& text) {
  return text.empty() ? Json::object() : Json::parse(text, nullptr, false);
}

bool is_echo_of_call(const TurnCall& call, const Json& sent, const dialect::Tools& tools) {
  if (!sent.is_object()) return false;
  const auto nested = sent.find("function");
  const Json& function = nested == sent.end() ? sent : *nested;
  if (!function.is_object() || string_in(function, "name") != call.name) return false;
  const std::string_view id = string_in(sent, "id");
  if (!id.empty() && id != call.id) return false;
  const auto arguments = function.find("arguments");
  const Json drawn = parsed_arguments(call.arguments);
  if (drawn.is_discarded()) return false;
  const Json& given = arguments == function.end() ? Json::object() : *arguments;
  return same_value(drawn, given, tools.parameters(call.name));
}

std::optional<Turn> turn_of(const Json& packed) {
  if (!packed.is_array() || packed.size() != 11 || packed[0] != kVersion) return std::nullopt;
  if (!packed[1].is_string() || !packed[2].is_binary() || !packed[3].is_number_unsigned()) {
    return std::nullopt;
  }
  Turn turn;
  turn.id = packed[1].get<std::string>();
  turn.run_bytes = packed[3].get<uint64_t>();
  const auto& digest = packed[2].get_binary();
  if (digest.size() != turn.before.size()) return std::nullopt;
  std::copy(digest.begin(), digest.end(), turn.before.begin());
  turn.frame = packed[4].get<std::string>();
  turn.opening = packed[5].get<std::string>();
  turn.tokens = packed[6].get<std::vector<gen::TokenId>>();
  turn.thinking = packed[7].get<std::string>();
  turn.text = packed[8].get<std::string>();
  for (const Json& call : packed[9]) {
    turn.calls.push_back({.id = call.at(0).get<std::string>(),
                          .name = call.at(1).get<std::string>(),
                          .arguments = call.at(2).get<std::string>()});
  }
  turn.began = packed[10].get<int64_t>();
  if (turn.began < 0) return std::nullopt;
  return turn;
}

}  // namespace

size_t Turn::bytes() const {
  size_t bytes = sizeof(Turn) + id.size() + thinking.size() + text.size();
  bytes += frame.size() + opening.size();
  bytes += tokens.size() * sizeof(gen::TokenId);
  for (const TurnCall& call : calls) {
    bytes += sizeof(TurnCall) + call.id.size() + call.name.size() + call.arguments.size();
  }
  return bytes;
}

std::string encode(const Turn& turn) {
  Json calls = Json::array();
  for (const TurnCall& call : turn.calls) {
    calls.push_back(Json::array({call.id, call.name, call.arguments}));
  }
  Json packed = Json::array();
  packed.push_back(kVersion);
  packed.push_back(turn.id);
  packed.push_back(Json::binary({turn.before.begin(), turn.before.end()}));
  packed.push_back(turn.run_bytes);
  packed.push_back(turn.frame);
  packed.push_back(turn.opening);
  packed.push_back(turn.tokens);
  packed.push_back(turn.thinking);
  packed.push_back(turn.text);
  packed.push_back(std::move(calls));
  packed.push_back(turn.began);
  std::string bytes;
  Json::to_msgpack(packed, bytes);
  return bytes;
}

std::optional<Turn> decode(std::string_view bytes) {
  const Json packed = Json::from_msgpack(bytes.begin(), bytes.end(), true, false);
  try {
    return packed.is_discarded() ? std::nullopt : turn_of(packed);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Json message_of(const Turn& turn) {
  Json message{{"role", "assistant"}, {"content", turn.text}};
  if (!turn.thinking.empty()) message["reasoning_content"] = turn.thinking;
  for (const TurnCall& call : turn.calls) {
    Json arguments = parsed_arguments(call.arguments);
    if (arguments.is_discarded()) arguments = call.arguments;
    message["tool_calls"].push_back(
        Json{{"id", call.id},
             {"type", "function"},
             {"function", Json{{"name", call.name}, {"arguments", std::move(arguments)}}}});
  }
  return message;
}

bool is_echo(const Turn& turn, const Json& message, const dialect::Tools& tools) {
  if (trimmed(string_in(message, "content")) != trimmed(turn.text)) return false;
  const std::string_view thinking = trimmed(string_in(message, "reasoning_content"));
  if (!thinking.empty() && thinking != trimmed(turn.thinking)) return false;
  const auto calls = message.find("tool_calls");
  const bool has_calls = calls != message.end() && calls->is_array();
  if ((has_calls ? calls->size() : 0) != turn.calls.size()) return false;
  for (size_t i = 0; i < turn.calls.size(); ++i) {
    if (!is_echo_of_call(turn.calls[i], (*calls)[i], tools)) return false;
  }
  return true;
}

}  // namespace tandem::replay
