// Conversations with models that have no chat template: roles as words.
#pragma once

#include <string>

#include "chat/request.h"
#include "protocol/fields.h"

namespace tandem::protocol::openai {

/// What is written before a message of each role, and behind every message. The defaults are
/// mlx-lm's.
struct RoleMapping {
  std::string system = "ASSISTANT's RULE: ";
  std::string user = "USER: ";
  std::string assistant = "ASSISTANT: ";
  std::string tool;
  std::string stop = "\n";
};

/// Reads {"role_mapping": {"user": "…", …}}, which replaces all defaults. Models with a template do
/// not need it.
RoleMapping read_role_mapping(Fields& fields);

/// The prompt; it ends where the assistant's next words, or those that go on, belong.
std::string render_plainly(const chat::Conversation& conversation, const RoleMapping& roles);

}  // namespace tandem::protocol::openai
