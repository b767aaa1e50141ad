#include "protocol/anthropic/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "protocol/message_rules.h"

namespace tandem::protocol::anthropic {
namespace {

/// Stands between blocks that a client wrote apart.
constexpr std::string_view kBetween = "\n\n";

/// One message's blocks, by kind.
struct Content {
  std::string text;
  std::string thinking;
  std::string handle;  // of the turn: the last signature
  Json calls = Json::array();
  std::vector<Json> results;  // messages of role "tool"
};

/// Where blocks are read, and what for.
struct Place {
  std::string path;  // such as "messages[2].content"
  std::string role;
  std::vector<chat::Warning>& warnings;
};

Error not_supported(const std::string& path, std::string_view type) {
  return {ErrorCode::kUnsupported,
          fmt::format("'{}.type' {} is not supported: this model reads text only", path,
                      literal(shortened(type, 40))),
          path + ".type"};
}

void append(std::string& text, std::string_view more, std::string_view between = kBetween) {
  if (!text.empty() && !more.empty()) text += between;
  text += more;
}

/// The type of a block; an error when it has none.
Result<std::string> type_of(const Json& block, const std::string& path) {
  if (!block.is_object()) return broken_rule(path, "must be an object, not " + excerpt(block));
  std::string type = string_in(block, "type");
  if (type.empty()) return broken_rule(path + ".type", "must be a string that is not empty");
  return type;
}

Result<std::string> required_text(const Json& block, const char* name, const std::string& path) {
  const auto text = block.find(name);
  if (text == block.end() || !text->is_string()) {
    return broken_rule(fmt::format("{}.{}", path, name), "must be a string");
  }
  return text->get<std::string>();
}

Result<std::string> text_block(const Json& block, const std::string& path) {
  const auto type = type_of(block, path);
  if (!type) return type.error();
  if (*type != "text") return not_supported(path, *type);
  return required_text(block, "text", path);
}

/// Text of a string or of a list of text blocks.
Result<std::string> plain_text(const Json& content, const std::string& path) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    return broken_rule(path, "must be a string or an array of blocks, not " + excerpt(content));
  }
  std::string joined;
  for (size_t i = 0; i < content.size(); ++i) {
    auto text = text_block(content[i], fmt::format("{}[{}]", path, i));
    if (!text) return text;
    append(joined, *text);
  }
  return joined;
}

/// A document that is text already, under its title.
Result<std::string> document_text(const Json& block, const std::string& path) {
  const auto source = block.find("source");
  const std::string kind =
      source != block.end() && source->is_object() ? string_in(*source, "type") : std::string();
  Result<std::string> text = not_supported(path, "document");
  if (kind == "text") text = required_text(*source, "data", path + ".source");
  if (kind == "content") text = plain_text((*source)["content"], path + ".source.content");
  if (!text) return text;
  std::string out = string_in(block, "title");
  append(out, string_in(block, "context"));
  append(out, *text);
  return out;
}

Result<std::string> search_result_text(const Json& block, const std::string& path) {
  std::string out = string_in(block, "title");
  append(out, string_in(block, "source"), "\n");
  auto text = plain_text(block.value("content", Json()), path + ".content");
  if (!text) return text;
  append(out, *text);
  return out;
}

bool is_readable(std::string_view type) {
  return type == "text" || type == "document" || type == "search_result";
}

/// Text of a block that has some. Requires is_readable.
Result<std::string> readable_text(const Json& block,
                                  const std::string& type,
                                  const std::string& path) {
  if (type == "document") return document_text(block, path);
  if (type == "search_result") return search_result_text(block, path);
  return required_text(block, "text", path);
}

/// Models see is_error only as words; most clients write them themselves.
std::string with_error(std::string text) {
  std::string start = text.substr(0, 32);
  std::ranges::transform(start, start.begin(), [](unsigned char c) { return std::tolower(c); });
  if (start.find("error") != std::string::npos) return text;
  return text.empty() ? "Error" : "Error: " + text;
}

/// A result's content: blocks of other kinds are named in the text, since the client cannot take
/// them back.
Result<std::string> result_text(const Json& content,
                                const std::string& path,
                                std::vector<chat::Warning>& warnings) {
  if (!content.is_array()) return plain_text(content, path);
  std::string joined;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", path, i);
    const auto type = type_of(content[i], here);
    if (!type) return type.error();
    if (!is_readable(*type)) {
      append(joined, left_out_of_result(*type, warnings));
      continue;
    }
    auto text = readable_text(content[i], *type, here);
    if (!text && text.error().code == ErrorCode::kUnsupported) {
      text = left_out_of_result(*type, warnings);
    }
    if (!text) return text;
    append(joined, *text);
  }
  return joined;
}

Status read_result(const Json& block, const std::string& path, Place& place, Content& out) {
  if (place.role != "user") return broken_rule(path, "must be in a message of the user");
  const std::string id = string_in(block, "tool_use_id");
  if (id.empty()) return broken_rule(path + ".tool_use_id", "must be a string that is not empty");
  auto text = result_text(block.value("content", Json()), path + ".content", place.warnings);
  if (!text) return text.error();
  if (block.value("is_error", Json()) == true) text = with_error(std::move(*text));
  Json message;
  message["role"] = "tool";
  message["content"] = std::move(*text);
  message["tool_call_id"] = id;
  out.results.push_back(std::move(message));
  return {};
}

Status read_use(const Json& block, const std::string& path, Content& out) {
  const std::string name = string_in(block, "name");
  if (name.empty()) return broken_rule(path + ".name", "must be a string that is not empty");
  Json input = block.value("input", Json());
  if (input.is_null()) input = Json::object();
  Json call;
  if (const std::string id = string_in(block, "id"); !id.empty()) call["id"] = id;
  call["type"] = "function";
  call["function"] = Json{{"name", name}, {"arguments", std::move(input)}};
  out.calls.push_back(std::move(call));
  return {};
}

/// What other servers' own tools left in an answer.
bool is_of_server(std::string_view type) {
  return type == "server_tool_use" || type == "mcp_tool_use" || type.ends_with("_tool_result");
}

Status read_answer_block(const Json& block,
                         const std::string& type,
                         const std::string& path,
                         Place& place,
                         Content& out) {
  const char* proof = type == "redacted_thinking" ? "data" : "signature";
  if (std::string handle = string_in(block, proof); !handle.empty()) out.handle = std::move(handle);
  if (type == "redacted_thinking") return {};
  if (type == "tool_use") return read_use(block, path, out);
  if (type == "thinking" || type == "text") {
    auto text = required_text(block, type.c_str(), path);
    if (!text) return text.error();
    (type == "text" ? out.text : out.thinking) += *text;
    return {};
  }
  if (!is_of_server(type)) return not_supported(path, type);
  warn(place.warnings, {.code = "left_out_of_answer",
                        .message = "what tools of another server did was left out of answers"});
  return {};
}

Status read_block(const Json& block, const std::string& path, Place& place, Content& out) {
  const auto type = type_of(block, path);
  if (!type) return type.error();
  if (*type == "tool_result") return read_result(block, path, place, out);
  if (place.role == "assistant") return read_answer_block(block, *type, path, place, out);
  if (!is_readable(*type)) return not_supported(path, *type);
  auto text = readable_text(block, *type, path);
  if (!text) return text.error();
  append(out.text, *text);
  return {};
}

Result<Content> read_content(const Json& message, Place place) {
  Content out;
  const auto content = message.find("content");
  if (content == message.end()) return broken_rule(place.path, "is missing");
  if (!content->is_array()) {
    auto text = plain_text(*content, place.path);
    if (!text) return text.error();
    out.text = std::move(*text);
    return out;
  }
  for (size_t i = 0; i < content->size(); ++i) {
    const Status read = read_block((*content)[i], fmt::format("{}[{}]", place.path, i), place, out);
    if (!read) return read.error();
  }
  return out;
}

/// One message as several: results first, as callers want them right behind their calls.
Status read_message(const Json& message,
                    const std::string& path,
                    std::vector<chat::Warning>& warnings,
                    Json& out) {
  if (!message.is_object()) return broken_rule(path, "must be an object, not " + excerpt(message));
  const std::string role = string_in(message, "role");
  if (role != "user" && role != "assistant" && role != "system") {
    return broken_rule(path + ".role", "must be user, assistant or system");
  }
  auto content =
      read_content(message, {.path = path + ".content", .role = role, .warnings = warnings});
  if (!content) return content.error();
  for (Json& result : content->results) out.push_back(std::move(result));
  if (content->text.empty() && !content->results.empty()) return {};
  Json turn;
  turn["role"] = role;
  turn["content"] = std::move(content->text);
  if (!content->thinking.empty()) turn["reasoning_content"] = std::move(content->thinking);
  if (!content->handle.empty()) turn[chat::kTurnHandle] = std::move(content->handle);
  if (!content->calls.empty()) turn["tool_calls"] = std::move(content->calls);
  out.push_back(std::move(turn));
  return {};
}

/// The system text: a string or text blocks, without the line that differs between sessions.
Result<std::string> read_system(const Json& system) {
  if (!system.is_array()) {
    auto text = plain_text(system, "system");
    if (!text) return text;
    return std::string(without_request_line(*text));
  }
  std::string joined;
  for (size_t i = 0; i < system.size(); ++i) {
    auto text = text_block(system[i], fmt::format("system[{}]", i));
    if (!text) return text;
    append(joined, without_request_line(*text));
  }
  return joined;
}

}  // namespace

Json read_messages(Fields& fields, std::vector<chat::Warning>& warnings) {
  Json out = Json::array();
  if (const Json* given = fields.any("system")) {
    const auto system = read_system(*given);
    if (!system) {
      fields.keep(system.error());
    } else if (!system->empty()) {
      out.push_back(Json{{"role", "system"}, {"content", *system}});
    }
  }
  const Json* messages = fields.array("messages");
  if (!messages) {
    fields.refuse("messages", "is missing: it must be an array of messages");
    return out;
  }
  if (messages->empty()) fields.refuse("messages", "must hold at least one message");
  for (size_t i = 0; i < messages->size(); ++i) {
    const Status read = read_message((*messages)[i], fmt::format("messages[{}]", i), warnings, out);
    if (!read) {
      fields.keep(read.error());
      return out;
    }
  }
  name_tool_results(out);
  return out;
}

}  // namespace tandem::protocol::anthropic
