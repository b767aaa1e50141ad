#include "script/seen.h"

#include <algorithm>

#include "chat/message_forms.h"

namespace tandem::script {
namespace {

constexpr std::array kNames = {"user", "last", "result", "system"};

void add_line(std::string& to, const std::string& text) {
  if (!to.empty()) to += '\n';
  to += text;
}

}  // namespace

const char* name(Place place) { return kNames[static_cast<size_t>(place)]; }

std::optional<Place> place_named(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Place>(found - kNames.begin());
}

Seen::Seen(const chat::Request& request) {
  const auto slot = [this](Place place) -> std::string& {
    return texts[static_cast<size_t>(place)];
  };
  const auto* talk = std::get_if<chat::Conversation>(&request.input);
  if (talk == nullptr) {
    const auto& prompt = std::get<chat::RawPrompt>(request.input).prompt;
    if (const auto* text = std::get_if<std::string>(&prompt))
      slot(Place::kUser) = slot(Place::kLast) = *text;
    return;
  }
  tools = dialect::Tools(talk->tools);
  for (const chat::Json& message : talk->messages) {
    const std::string text = chat::message_text(message);
    const std::string role = message.value("role", "");
    slot(Place::kLast) = text;
    if (role == "user") add_line(slot(Place::kUser), text);
    if (role == "system" || role == "developer") add_line(slot(Place::kSystem), text);
    if (role != "tool") continue;
    slot(Place::kResult) = text;
    ++results;
  }
}

bool Seen::offers(std::string_view tool) const {
  const size_t dot = tool.find('.');
  const std::string_view name = tool.substr(0, dot);
  if (!tools.has(name)) return false;
  if (dot == std::string_view::npos) return true;
  const dialect::Schema parameter = tools.parameters(name).property(tool.substr(dot + 1));
  return parameter.json() != nullptr;
}

}  // namespace tandem::script
