#include "protocol/openai/role_mapping.h"

namespace tandem::protocol::openai {
namespace {

constexpr size_t kMaxWordBytes = 4096;

const std::string& prefix_of(const RoleMapping& roles, const std::string& role) {
  if (role == "user") return roles.user;
  if (role == "assistant") return roles.assistant;
  return role == "tool" ? roles.tool : roles.system;
}

}  // namespace

RoleMapping read_role_mapping(Fields& fields) {
  const Json* given = fields.object("role_mapping");
  if (!given) return {};
  RoleMapping out{.system = {}, .user = {}, .assistant = {}, .tool = {}, .stop = {}};
  Fields inner(*given, "role_mapping.");
  const auto read = [&](const char* name, std::string& word) {
    if (auto text = inner.string(name, kMaxWordBytes)) word = std::move(*text);
  };
  read("system", out.system);
  read("user", out.user);
  read("assistant", out.assistant);
  read("tool", out.tool);
  read("stop", out.stop);
  if (inner.error()) fields.keep(*inner.error());
  return out;
}

std::string render_plainly(const chat::Conversation& conversation, const RoleMapping& roles) {
  std::string prompt;
  for (const Json& message : conversation.messages) {
    prompt += prefix_of(roles, message["role"].get<std::string>());
    prompt += message["content"].get<std::string>();
    prompt += roles.stop;
  }
  if (conversation.continues_last_message) {
    prompt.resize(prompt.size() - roles.stop.size());
    return prompt;
  }
  prompt += roles.assistant;
  prompt.resize(prompt.find_last_not_of(" \t\r\n") + 1);
  return prompt;
}

}  // namespace tandem::protocol::openai
