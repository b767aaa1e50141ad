#include "protocol/openai/chat_tools.h"

#include <fmt/format.h>

#include <utility>

namespace tandem::protocol::openai {
namespace {

constexpr size_t kMaxToolName = 512;

/// {"type": "function", "function": {"name", …}}; `kinds`: what else is offered, in words.
Status check_function(const Json& tool, const std::string& place, const char* kinds) {
  if (!tool.is_object()) return broken_rule(place, "must be an object, not " + excerpt(tool));
  const std::string type = string_in(tool, "type");
  if (type != "function") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("'{}.type' {} is not supported: only {}", place,
                             literal(shortened(type, 40)), kinds),
                 place + ".type"};
  }
  const auto function = tool.find("function");
  if (function == tool.end() || !function->is_object() || string_in(*function, "name").empty()) {
    return broken_rule(place + ".function", "must be an object with a name");
  }
  return {};
}

/// Reads tools one after another.
class ToolReader {
 public:
  ToolReader(ChatTools& out, std::vector<chat::Warning>& warnings)
      : out_(out), warnings_(warnings) {}

  Status read(const Json& tool, const std::string& place) {
    const bool is_custom = string_in(tool, "type") == "custom";
    const char* const kind = is_custom ? "custom" : "function";
    const Status ok = is_custom ? read_custom(tool, place)
                                : check_function(tool, place, R"("function" and "custom" are)");
    if (!ok) return ok;
    if (!is_custom) out_.functions.push_back(tool);
    return take_name(string_in(tool[kind], "name"), is_custom, place + "." + kind + ".name");
  }

 private:
  Status read_custom(const Json& tool, const std::string& place) {
    const auto custom = tool.find("custom");
    if (custom == tool.end() || !custom->is_object()) {
      return broken_rule(place + ".custom", "must be an object with a name");
    }
    const std::string inside = place + ".custom";
    Fields fields(*custom, inside + ".");
    const std::string name = fields.string("name", kMaxToolName).value_or("");
    if (name.empty()) fields.refuse("name", "must be a string that is not empty");
    Json function = read_custom_tool(fields, name, inside, out_.text_rules, warnings_);
    if (fields.error()) return *fields.error();
    out_.functions.push_back(std::move(function));
    return {};
  }

  /// A call has nothing but its name to tell what was called.
  Status take_name(const std::string& name, bool is_custom, const std::string& place) {
    if (is_custom) out_.custom.insert(name);
    const bool is_new = names_.insert(name).second;
    if (is_new || !out_.custom.contains(name)) return {};
    return broken_rule(place, fmt::format("{} is the name of another tool, too: give each its own",
                                          literal(shortened(name, 80))));
  }

  ChatTools& out_;
  std::vector<chat::Warning>& warnings_;
  std::set<std::string> names_;
};

}  // namespace

ChatTools read_tools(Fields& fields, std::vector<chat::Warning>& warnings) {
  ChatTools out;
  const Json* tools = fields.array("tools");
  if (!tools) return out;
  ToolReader reader(out, warnings);
  for (size_t i = 0; i < tools->size(); ++i) {
    if (const Status ok = reader.read((*tools)[i], fmt::format("tools[{}]", i)); !ok) {
      fields.keep(ok.error());
      return {};
    }
  }
  return out;
}

Json read_functions(Fields& fields) {
  const Json* tools = fields.array("tools");
  if (!tools || tools->empty()) return nullptr;
  for (size_t i = 0; i < tools->size(); ++i) {
    const Status ok = check_function((*tools)[i], fmt::format("tools[{}]", i), R"("function" is)");
    if (!ok) {
      fields.keep(ok.error());
      return nullptr;
    }
  }
  return *tools;
}

}  // namespace tandem::protocol::openai
