#include "replay/lineage.h"

#include "dialect/json_text.h"

namespace tandem::replay {
namespace {

std::string_view text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

void add_calls(Digest& digest, const Json& message) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (const Json& call : *calls) {
    if (!call.is_object()) continue;
    const auto function = call.find("function");
    const Json& named = function != call.end() && function->is_object() ? *function : call;
    digest.add_field(text_of(call, "id")).add_field(text_of(named, "name"));
  }
}

Digest::Value after(const Digest::Value& said, const Json& message) {
  Digest digest;
  digest.add_field(said).add_field(text_of(message, "role"));
  digest.add_field(dialect::trimmed(text_of(message, "content")));
  add_calls(digest, message);
  return digest.value();
}

}  // namespace

void Lineage::add(const Json& message) {
  const std::string_view role = text_of(message, "role");
  if (role != "system" && role != "developer") said_ = after(said_, message);
}

std::string Lineage::key_of(const Json& message) const {
  return "said:" + hex_of(after(said_, message));
}

std::string call_key(std::string_view call_id) { return "call:" + std::string(call_id); }

std::string turn_key(std::string_view turn_id) { return "turn:" + std::string(turn_id); }

}  // namespace tandem::replay
