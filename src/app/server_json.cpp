#include "app/server_json.h"

namespace tandem::app {
namespace {

const nlohmann::ordered_json& null_json() {
  static const nlohmann::ordered_json kNull;
  return kNull;
}

}  // namespace

nlohmann::ordered_json parse_server_json(const std::string& text) {
  auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  return json.is_discarded() ? null_json() : json;
}

const nlohmann::ordered_json& member_of(const nlohmann::ordered_json& of, const char* name) {
  if (!of.is_object()) return null_json();
  const auto found = of.find(name);
  return found == of.end() ? null_json() : *found;
}

const nlohmann::ordered_json& first_of(const nlohmann::ordered_json& of) {
  return of.is_array() && !of.empty() ? of.front() : null_json();
}

uint64_t number_of(const nlohmann::ordered_json& of, const char* name) {
  const auto& value = member_of(of, name);
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

std::string text_of(const nlohmann::ordered_json& of, const char* name) {
  const auto& value = member_of(of, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace tandem::app
