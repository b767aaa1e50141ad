#include "protocol/ollama/messages.h"

#include <fmt/format.h>

#include <deque>
#include <string>
#include <utility>

#include "protocol/openai/messages.h"

namespace tandem::protocol::ollama {
namespace {

/// Gives ids to calls without one, in order, and to results those of the calls that they answer.
class Ids {
 public:
  void visit(Json& message) {
    const Json role = message.value("role", Json());
    if (role == "assistant") {
      visit_calls(message);
    } else if (role == "tool" && !message.contains("tool_call_id")) {
      answer(message);
    }
  }

 private:
  struct Open {
    std::string id;
    std::string name;
  };

  void visit_calls(Json& message) {
    open_.clear();
    const auto calls = message.find("tool_calls");
    if (calls == message.end() || !calls->is_array()) return;
    for (Json& call : *calls) {
      if (!call.is_object()) continue;
      // Nine letters and digits: some templates insist.
      if (!call.contains("id")) call["id"] = fmt::format("call{:05}", count_ % 100'000);
      ++count_;
      const Json function = call.value("function", Json());
      const Json name = function.is_object() ? function.value("name", Json()) : Json();
      if (call["id"].is_string() && name.is_string()) open_.push_back({call["id"], name});
    }
  }

  /// The first open call of that name, else the first.
  void answer(Json& message) {
    if (open_.empty()) return;
    const Json name = message.value("name", Json());
    auto call = open_.begin();
    while (call != open_.end() && name != call->name) ++call;
    if (call == open_.end()) call = open_.begin();
    message["tool_call_id"] = call->id;
    open_.erase(call);
  }

  std::deque<Open> open_;
  size_t count_ = 0;
};

void rename(Json& message, const char* from, const char* to) {
  const auto found = message.find(from);
  if (found == message.end()) return;
  Json value = std::move(*found);
  message.erase(found);
  if (!value.is_null() && !message.contains(to)) message[to] = std::move(value);
}

bool has_images(const Json& message) {
  const auto images = message.find("images");
  return images != message.end() && !images->is_null() && !(images->is_array() && images->empty());
}

}  // namespace

Json read_messages(Fields& fields, std::vector<chat::Warning>& warnings) {
  const Json* given = fields.array("messages");
  if (!given) {
    fields.refuse("messages", "is missing: it must be an array of messages");
    return Json::array();
  }
  Json body{{"messages", *given}};
  Ids ids;
  for (size_t i = 0; i < given->size(); ++i) {
    Json& message = body["messages"][i];
    if (!message.is_object()) continue;
    if (has_images(message)) {
      const std::string place = fmt::format("messages[{}].images", i);
      fields.keep({ErrorCode::kUnsupported,
                   fmt::format("'{}' is not supported: this model reads text only", place), place});
    }
    rename(message, "thinking", "reasoning_content");
    rename(message, "tool_name", "name");
    if (!message.contains("content")) message["content"] = "";
    ids.visit(message);
  }
  Fields inner(body);
  Json messages = openai::read_messages(inner, warnings);
  if (inner.error()) fields.keep(*inner.error());
  return messages;
}

}  // namespace tandem::protocol::ollama
