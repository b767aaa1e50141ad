// Chat templates: conversations to prompts.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/bridge.h"

namespace tandem::text {

using Json = nlohmann::ordered_json;

/// A wall-clock time with its zone, which templates may print.
struct LocalTime {
  int64_t unix_seconds = 0;
  int32_t utc_offset_seconds = 0;
};

/// The time of this machine, now.
LocalTime machine_time();

/// One compiled Jinja template. Immutable; thread-safe.
class Template {
 public:
  /// kCorrupt when the source is not valid Jinja.
  static Result<Template> compile(std::string_view source);

  /// Renders an object of variables. kInvalid carries the message the template raised, or what went
  /// wrong in it and where. Bounded in steps and depth.
  Result<std::string> render(const Json& context, LocalTime now) const;

  /// The same with the object as JSON text, whose numbers may have any number of digits.
  Result<std::string> render_text(std::string_view context, LocalTime now) const;

 private:
  explicit Template(bridge::TemplateHandle handle) : handle_(std::move(handle)) {}

  bridge::TemplateHandle handle_;
};

/// What a chat template is given besides its model's own strings.
struct ChatContext {
  Json messages = Json::array();
  Json tools = nullptr;             // left out when null or empty
  Json arguments = Json::object();  // further variables
  bool add_generation_prompt = true;
};

/// A model's chat template, perhaps in several variants. Immutable; thread-safe.
class ChatTemplate {
 public:
  /// `sources`: variants by name, of which "default" is used, and "tool_use" (when present) for
  /// conversations with tools. `special`: bos_token, eos_token and their like. kCorrupt names the
  /// variant.
  static Result<ChatTemplate> compile(const std::map<std::string, std::string>& sources,
                                      std::map<std::string, std::string> special);

  Result<std::string> render(const ChatContext& context, LocalTime now) const;

  /// True when some variant's source contains the word.
  bool mentions(std::string_view word) const;

  /// The sources of all variants, one after the other.
  std::string source() const;

 private:
  ChatTemplate() = default;

  std::map<std::string, std::string> sources_;
  std::map<std::string, Template> variants_;
  std::map<std::string, std::string> special_;
};

}  // namespace tandem::text
