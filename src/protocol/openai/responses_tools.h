// Tools of POST /v1/responses, in the form that chat templates read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "chat/service.h"
#include "protocol/fields.h"
#include "protocol/openai/custom_tools.h"

namespace tandem::protocol::openai {

/// How a function that the model sees is called on the wire.
struct ToolName {
  std::string name;
  std::string name_space;  // of a tool that came in one
  bool custom = false;     // takes text: the model sees a function of one string, "input"
};

/// By the name that the model sees, for those tools only whose calls look otherwise.
using ToolNames = std::map<std::string, ToolName>;

struct ResponsesTools {
  Json functions = Json::array();  // as chat templates read them
  ToolNames names;
  TextRules text_rules;

  /// What the model sees for a tool of a namespace.
  static std::string joined(const std::string& name_space, const std::string& name);

  /// Adds a list of tools: functions, custom tools, and those of namespaces. Others, which OpenAI's
  /// servers or particular clients run, are left out with a warning; so is told of a grammar that
  /// cannot be enforced. Errors are kept in `fields`; `place` names the list.
  void add(Fields& fields,
           const Json& tools,
           const std::string& place,
           std::vector<chat::Warning>& warnings);

 private:
  void add_one(Fields& fields,
               const Json& tool,
               const std::string& place,
               const std::string& name_space,
               std::vector<chat::Warning>& warnings);
};

}  // namespace tandem::protocol::openai
