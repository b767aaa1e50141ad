#include "chat/turn_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "text/detokenizer.h"

namespace tandem::chat {

TurnRecorder::Settings TurnRecorder::Settings::of_choice(uint32_t choice) const {
  Settings out = *this;
  if (choice == 0) return out;
  out.id += fmt::format("#{}", choice);
  out.ticket.reset();
  return out;
}

void TurnRecorder::take(const decltype(Event::body)& body, std::span<const gen::TokenId> tokens) {
  if (const auto* delta = std::get_if<Delta>(&body)) {
    if (delta->text.empty()) return;
    in_thinking_ = delta->channel == Channel::kThinking;
    (in_thinking_ ? turn_.thinking : turn_.text) += delta->text;
  } else if (const auto* call = std::get_if<CallStarted>(&body)) {
    in_call_ = true;
    in_thinking_ = false;
    turn_.calls.push_back({.id = call->id, .name = call->name, .arguments = {}});
  } else if (const auto* piece = std::get_if<CallArguments>(&body)) {
    if (!turn_.calls.empty()) turn_.calls.back().arguments += piece->json;
  } else if (const auto* ended = std::get_if<CallEnded>(&body)) {
    in_call_ = false;
    has_broken_call_ |= !ended->is_complete;
  } else if (const auto* last = std::get_if<End>(&body)) {
    end(*last, tokens);
  }
}

void TurnRecorder::end(const End& end, std::span<const gen::TokenId> tokens) {
  const auto& stops = settings_.stop_ids;
  const bool has_stop = !tokens.empty() && std::ranges::find(stops, tokens.back()) != stops.end();
  turn_.tokens.assign(tokens.begin(), tokens.end() - (has_stop ? 1 : 0));
  if (settings_.known && settings_.ticket) {
    settings_.known->answered(settings_.ticket, turn_.tokens);
  }
  if (!settings_.memory || !settings_.start || !is_safe(end)) return;
  turn_.id = settings_.id;
  turn_.before = settings_.start->before;
  turn_.run_bytes = settings_.start->run_bytes;
  turn_.frame = settings_.start->frame;
  turn_.opening = settings_.start->opening;
  turn_.began = settings_.start->began;
  const std::vector<std::string> names = keys();
  const bool outlives = settings_.outlives && !turn_.thinking.empty();
  settings_.memory->remember(settings_.start->owner, std::move(turn_), names, outlives);
}

bool TurnRecorder::is_safe(const End& end) const {
  if (!end.stop_text.empty() || end.broken_calls > 0 || has_broken_call_) return false;
  if (end.cut_in_call) return false;
  if (settings_.cuts_calls && !turn_.calls.empty()) return false;
  if (in_call_ || in_thinking_ || turn_.tokens.empty()) return false;
  return !(turn_.text.empty() && turn_.calls.empty()) && !ends_inside_character();
}

bool TurnRecorder::ends_inside_character() const {
  if (!settings_.tokenizer) return false;
  text::Detokenizer detokenizer(*settings_.tokenizer);
  // No character has more bytes, and so no more tokens; text in front of them is whole or not.
  const auto& tokens = turn_.tokens;
  for (size_t i = tokens.size() - std::min<size_t>(tokens.size(), 8); i < tokens.size(); ++i) {
    detokenizer.push(tokens[i]);
  }
  return detokenizer.finish();
}

std::vector<std::string> TurnRecorder::keys() const {
  std::vector<std::string> keys = {replay::turn_key(turn_.id),
                                   settings_.start->lineage.key_of(replay::message_of(turn_))};
  for (const replay::TurnCall& call : turn_.calls) {
    if (is_drawn_call_id(call.id)) keys.push_back(replay::call_key(call.id));
  }
  return keys;
}

bool is_drawn_call_id(std::string_view id) {
  constexpr std::string_view kPrefix = "call_";
  if (!id.starts_with(kPrefix) || id.size() != 25) return false;
  return std::ranges::all_of(id.substr(kPrefix.size()),
                             [](unsigned char c) { return std::isalnum(c) != 0; });
}

}  // namespace tandem::chat
