#include "text/template.h"

#include <ctime>
#include <utility>

namespace tandem::text {
namespace {

constexpr const char* kDefault = "default";
constexpr const char* kToolUse = "tool_use";

bool is_empty(const Json& value) { return value.is_null() || (value.is_array() && value.empty()); }

}  // namespace

LocalTime machine_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return {.unix_seconds = now, .utc_offset_seconds = static_cast<int32_t>(parts.tm_gmtoff)};
}

Result<Template> Template::compile(std::string_view source) {
  auto handle = bridge::make_template(source);
  if (!handle) return handle.error();
  return Template(std::move(handle).value());
}

Result<std::string> Template::render(const Json& context, LocalTime now) const {
  const std::string json = context.dump(-1, ' ', false, Json::error_handler_t::replace);
  return render_text(json, now);
}

Result<std::string> Template::render_text(std::string_view context, LocalTime now) const {
  return bridge::render(*handle_, context, now.unix_seconds, now.utc_offset_seconds);
}

Result<ChatTemplate> ChatTemplate::compile(const std::map<std::string, std::string>& sources,
                                           std::map<std::string, std::string> special) {
  ChatTemplate result;
  result.sources_ = sources;
  result.special_ = std::move(special);
  for (const auto& [name, source] : sources) {
    auto compiled = Template::compile(source);
    if (!compiled) {
      return Error{.code = compiled.error().code,
                   .message = "chat template \"" + name + "\": " + compiled.error().message};
    }
    result.variants_.emplace(name, std::move(compiled).value());
  }
  if (!result.variants_.contains(kDefault)) {
    return Error{.code = ErrorCode::kCorrupt, .message = "no chat template is named \"default\""};
  }
  return result;
}

Result<std::string> ChatTemplate::render(const ChatContext& context, LocalTime now) const {
  Json variables = Json::object();
  for (const auto& [name, text] : special_) variables[name] = text;
  if (context.arguments.is_object()) variables.update(context.arguments);
  variables["messages"] = context.messages;
  const bool has_tools = !is_empty(context.tools);
  if (has_tools) variables["tools"] = context.tools;
  variables["add_generation_prompt"] = context.add_generation_prompt;
  auto variant = variants_.find(has_tools ? kToolUse : kDefault);
  if (variant == variants_.end()) variant = variants_.find(kDefault);
  return variant->second.render(variables, now);
}

std::string ChatTemplate::source() const {
  std::string all;
  for (const auto& [name, source] : sources_) all += source + "\n";
  return all;
}

bool ChatTemplate::mentions(std::string_view word) const {
  for (const auto& [name, source] : sources_) {
    if (source.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace tandem::text
