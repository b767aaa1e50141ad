#include "protocol/openai/truncation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "protocol/message_rules.h"

namespace tandem::protocol::openai {
namespace {

constexpr uint32_t kUsualAnswer = 1024;  // tokens left for an answer without a bound of its own

bool is_role(const Json& message, const char* role) { return message.value("role", "") == role; }

bool is_system(const Json& message) {
  return is_role(message, "system") || is_role(message, "developer");
}

bool is_out(const Cut& cut, size_t i) {
  return (i >= cut.from && i < cut.turn) || (i >= cut.said && i < cut.answer);
}

/// Ids of the calls that a cut leaves out.
std::set<std::string> calls_out(const Json& messages, const Cut& cut) {
  std::set<std::string> ids;
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto calls = messages[i].find("tool_calls");
    if (!is_out(cut, i) || calls == messages[i].end()) continue;
    for (const Json& call : *calls) ids.insert(call.value("id", ""));
  }
  return ids;
}

size_t count_items(const Json& messages) {
  size_t count = 0;
  for (const Json& message : messages) count += items_in(message);
  return count;
}

/// Prompt tokens with these messages; more than any context when it cannot be told.
uint32_t tokens_with(const CountTokens& count, chat::Request& request, const Json& messages) {
  std::get<chat::Conversation>(request.input).messages = messages;
  const auto tokens = count(request);
  return tokens ? *tokens : UINT32_MAX;
}

/// The first cut that leaves at most this many tokens; the number of cuts when none does.
size_t first_that_fits(const CountTokens& count,
                       chat::Request& request,
                       const Json& messages,
                       const std::vector<Cut>& cuts,
                       uint32_t most) {
  size_t low = 0;
  size_t high = cuts.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (tokens_with(count, request, without(messages, cuts[middle])) <= most) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

size_t items_in(const Json& message) {
  if (!is_role(message, "assistant")) return 1;
  size_t count = message.contains("reasoning_content") ? 1 : 0;
  if (const auto calls = message.find("tool_calls"); calls != message.end()) count += calls->size();
  const bool speaks = !message.value("content", "").empty();
  return count + (speaks || count == 0 ? 1 : 0);
}

std::vector<Cut> cuts_of(const Json& messages) {
  size_t head = 0;
  while (head < messages.size() && is_system(messages[head])) ++head;
  std::vector<Cut> cuts;
  size_t turn = head;
  for (size_t i = head + 1; i < messages.size(); ++i) {
    if (!is_role(messages[i], "user") || is_role(messages[i - 1], "user")) continue;
    cuts.push_back({.from = head, .turn = i});
    turn = i;
  }
  size_t said = turn;
  while (said < messages.size() && !is_role(messages[said], "assistant")) ++said;
  for (size_t i = said + 1; i < messages.size(); ++i) {
    if (!is_role(messages[i], "assistant")) continue;
    cuts.push_back({.from = head, .turn = turn, .said = said, .answer = i});
  }
  return cuts;
}

Json without(const Json& messages, const Cut& cut) {
  const std::set<std::string> gone = calls_out(messages, cut);
  Json out = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (is_out(cut, i)) continue;
    const bool orphan =
        is_role(messages[i], "tool") && gone.contains(messages[i].value("tool_call_id", ""));
    if (!orphan) out.push_back(messages[i]);
  }
  return out;
}

void truncate_to_fit(const CountTokens& count, uint32_t context, WireRequest& wire) {
  auto* talk = std::get_if<chat::Conversation>(&wire.request.input);
  if (talk == nullptr || context == 0) return;
  const auto tokens = count(wire.request);
  if (!tokens || *tokens < context) return;
  const Json messages = talk->messages;
  const std::vector<Cut> cuts = cuts_of(messages);
  const uint32_t room = std::min(wire.request.max_tokens.value_or(kUsualAnswer), context / 4);
  size_t chosen =
      first_that_fits(count, wire.request, messages, cuts, context - std::max(room, 1U));
  if (chosen == cuts.size()) {
    chosen = first_that_fits(count, wire.request, messages, cuts, context - 1);
  }
  talk->messages = chosen == cuts.size() ? messages : without(messages, cuts[chosen]);
  if (chosen == cuts.size()) return;
  const size_t left_out = count_items(messages) - count_items(talk->messages);
  warn(wire.warnings,
       {.code = "input_truncated",
        .message = fmt::format("the {} oldest items of the conversation were left out: it had {} "
                               "tokens, and the model takes {}",
                               left_out, *tokens, context)});
}

}  // namespace tandem::protocol::openai
