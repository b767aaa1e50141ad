#include "dialect/read_back.h"

#include <string>
#include <utility>
#include <variant>

#include "dialect/grammar.h"

namespace tandem::dialect {
namespace {

constexpr const char* kTool = "f";
constexpr const char* kParameter = "v";

/// The arguments of the first call, if it is whole; else nothing.
std::string arguments_in(const std::vector<Event>& events) {
  std::string arguments;
  for (const Event& event : events) {
    if (const auto* part = std::get_if<CallArguments>(&event.body)) arguments += part->json;
    if (const auto* end = std::get_if<CallEnded>(&event.body)) {
      return end->complete ? arguments : std::string();
    }
  }
  return {};
}

}  // namespace

ReadBack::ReadBack(const Dialect& dialect, Schema schema) {
  const bool is_known = schema.json() != nullptr;
  Json value = is_known ? standing_alone(*schema.json(), schema.document()) : Json::object();
  Json parameters = {{"type", "object"}};
  if (value.is_object() && value.contains("$defs")) parameters["$defs"] = value["$defs"];
  parameters["properties"][kParameter] = std::move(value);
  Rules rules;
  rules.dialect = &dialect;
  rules.tools = Tools(Json::array({{{"name", kTool}, {"parameters", std::move(parameters)}}}));
  rules_ = std::make_shared<const Rules>(std::move(rules));
}

bool ReadBack::gives(const Json& value) const {
  const Call call{.name = kTool, .id = "abcdefghi", .arguments = {{kParameter, value}}};
  Parser parser(rules_, Channel::kText);
  std::vector<Event> events = parser.feed(render(rules_->dialect->layout, {&call, 1}));
  for (Event& event : parser.finish()) events.push_back(std::move(event));
  // Whatever the order of keys.
  const auto seen = nlohmann::json::parse(arguments_in(events), nullptr, false);
  return seen == nlohmann::json(call.arguments);
}

}  // namespace tandem::dialect
