#include "protocol/openai/responses_input.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "protocol/message_rules.h"
#include "protocol/openai/messages.h"
#include "protocol/openai/response_items.h"

namespace tandem::protocol::openai {
namespace {

Error unknown_item(const Json& item, const std::string& place) {
  return {
      ErrorCode::kNotFound,
      fmt::format("'{}' refers to the item {}, which is not kept here: send the item itself, or "
                  "ask for responses with store",
                  place, excerpt(item["id"])),
      place};
}

/// Members that are texts in whatever item has them, or null.
Status check_texts(const Json& item, const std::string& place) {
  for (const char* name :
       {"id", "type", "role", "call_id", "name", "namespace", "input", "encrypted_content"}) {
    const auto found = item.find(name);
    if (found == item.end() || found->is_null() || found->is_string()) continue;
    return broken_rule(place + "." + name, "must be a string, not " + excerpt(*found));
  }
  if (const auto summary = item.find("summary");
      summary != item.end() && !summary->is_null() && !summary->is_array()) {
    return broken_rule(place + ".summary", "must be an array, not " + excerpt(*summary));
  }
  return {};
}

/// Puts items together to messages.
class InputReader {
 public:
  InputReader(Fields& fields, ResponsesTools& tools, std::vector<chat::Warning>& warnings)
      : fields_(fields), tools_(tools), warnings_(warnings) {}

  Status read(const Json& item, const std::string& place) {
    if (!item.is_object()) return broken_rule(place, "must be an object, not " + excerpt(item));
    if (const Status texts = check_texts(item, place); !texts) return texts;
    if (is_reference(item)) return unknown_item(item, place);
    const std::string type = string_in(item, "type");
    if (type.empty() || type == "message") return read_message(item, place);
    if (type == "function_call" || type == "custom_tool_call") return read_call(item, type, place);
    if (type == "function_call_output" || type == "custom_tool_call_output") {
      return read_output(item, place);
    }
    if (type == "reasoning") return read_reasoning(item);
    if (const auto more = item.find("tools"); more != item.end() && more->is_array()) {
      tools_.add(fields_, *more, place + ".tools", warnings_);
      return {};
    }
    warn(warnings_, {.code = "item_left_out",
                     .message = fmt::format("items of type {} are left out of the conversation",
                                            literal(shortened(type, 40)))});
    return {};
  }

  void add(const std::string& role, std::string content) {
    messages_.push_back(Json{{"role", role}, {"content", std::move(content)}});
  }

  Json take() { return std::move(messages_); }

 private:
  /// The assistant's message that goes on; a new one after anything else.
  Json& answer() {
    if (messages_.empty() || messages_.back()["role"] != "assistant") add("assistant", "");
    return messages_.back();
  }

  Status read_message(const Json& item, const std::string& place) {
    const std::string role = string_in(item, "role");
    if (role != "user" && role != "assistant" && role != "system" && role != "developer") {
      return broken_rule(place + ".role", "must be user, assistant, system or developer");
    }
    if (!item.contains("content")) return broken_rule(place + ".content", "is missing");
    auto text = read_content(item["content"], place + ".content", false, warnings_);
    if (!text) return text.error();
    if (role != "assistant") {
      add(role, std::move(*text));
    } else {
      Json& content = answer()["content"];
      content = content.get<std::string>() + *text;
    }
    return {};
  }

  Status read_call(const Json& item, const std::string& type, const std::string& place) {
    const std::string name = string_in(item, "name");
    if (name.empty()) return broken_rule(place + ".name", "must be a string that is not empty");
    Json arguments = type == "function_call" ? read_arguments(item, warnings_)
                                             : custom_arguments(string_in(item, "input"));
    Json call;
    if (const std::string id = string_in(item, "call_id"); !id.empty()) call["id"] = id;
    call["type"] = "function";
    call["function"] = Json{{"name", ResponsesTools::joined(string_in(item, "namespace"), name)},
                            {"arguments", std::move(arguments)}};
    answer()["tool_calls"].push_back(std::move(call));
    return {};
  }

  Status read_output(const Json& item, const std::string& place) {
    Result<std::string> text = std::string();
    if (const auto given = item.find("output"); given != item.end()) {
      text = read_content(*given, place + ".output", true, warnings_);
    }
    if (!text) return text.error();
    add("tool", std::move(*text));
    if (const std::string id = string_in(item, "call_id"); !id.empty()) {
      messages_.back()["tool_call_id"] = id;
    }
    return {};
  }

  /// Our own thoughts come back as content, and are found again by encrypted_content where a client
  /// dropped that; of others' only a summary can be read.
  Status read_reasoning(const Json& item) {
    std::string text;
    for (const char* list : {"content", "summary"}) {
      const auto parts = item.find(list);
      if (!text.empty() || parts == item.end() || !parts->is_array()) continue;
      for (const Json& part : *parts) {
        if (part.is_object()) text += string_in(part, "text");
      }
    }
    const std::string handle = string_in(item, "encrypted_content");
    if (text.empty() && handle.empty()) return {};
    const bool follows = !messages_.empty() && messages_.back()["role"] == "assistant";
    const bool goes_on =
        follows && !handle.empty() && string_in(messages_.back(), chat::kTurnHandle) == handle;
    if (follows && !goes_on) add("assistant", "");
    if (goes_on) text = string_in(messages_.back(), "reasoning_content") + text;
    if (!text.empty()) answer()["reasoning_content"] = std::move(text);
    if (!handle.empty()) answer()[chat::kTurnHandle] = handle;
    return {};
  }

  Fields& fields_;
  ResponsesTools& tools_;
  std::vector<chat::Warning>& warnings_;
  Json messages_ = Json::array();
};

void read_items(Fields& fields, const Json& items, const char* place, InputReader& reader) {
  for (size_t i = 0; i < items.size(); ++i) {
    const Status read = reader.read(items[i], fmt::format("{}[{}]", place, i));
    if (!read) return fields.keep(read.error());
  }
}

}  // namespace

void check_items(Fields& fields, const Json& items, const char* name) {
  ResponsesTools tools;
  std::vector<chat::Warning> warnings;
  InputReader reader(fields, tools, warnings);
  read_items(fields, items, name, reader);
}

Json read_input(Fields& fields,
                ResponsesTools& tools,
                const Json& history,
                const char* history_name,
                std::vector<chat::Warning>& warnings) {
  InputReader reader(fields, tools, warnings);
  if (auto instructions = fields.string("instructions", SIZE_MAX);
      instructions && !instructions->empty()) {
    reader.add("system", std::move(*instructions));
  }
  read_items(fields, history, history_name, reader);
  const Json* input = fields.any("input");
  if (!input) {
    // As there, a conversation may go on without a word.
    if (history.empty()) {
      fields.refuse("input",
                    "is missing: it must be a string or an array of items, unless the request "
                    "goes on with a previous_response_id or a conversation");
    }
  } else if (input->is_string()) {
    reader.add("user", input->get<std::string>());
  } else if (input->is_array()) {
    read_items(fields, *input, "input", reader);
  } else {
    fields.refuse_value("input", "must be a string or an array of items");
  }
  Json messages = reader.take();
  // Clients ask with nothing whether somebody is there.
  if (messages.empty()) messages.push_back(Json{{"role", "user"}, {"content", ""}});
  drop_request_line(messages);
  name_tool_results(messages);
  return messages;
}

}  // namespace tandem::protocol::openai
