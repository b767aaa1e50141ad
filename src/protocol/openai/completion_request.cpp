#include "protocol/openai/completion_request.h"

#include <fmt/format.h>

#include <optional>

#include "protocol/openai/shared_fields.h"

namespace tandem::protocol::openai {
namespace {

using Prompt = std::variant<std::string, std::vector<gen::TokenId>>;

std::optional<Prompt> read_prompt(Fields& fields, const ParseContext& context) {
  const Json* value = fields.any("prompt");
  if (!value) {
    fields.refuse("prompt", "is missing");
    return std::nullopt;
  }
  if (value->is_array() && !value->empty() && !(*value)[0].is_number()) {
    if (value->size() > 1) {
      fields.unsupported("prompt", fmt::format("as an array of {} prompts", value->size()));
      return std::nullopt;
    }
    value = &(*value)[0];
  }
  if ((value->is_string() && value->get_ref<const std::string&>().empty()) ||
      (value->is_array() && value->empty())) {
    fields.refuse("prompt", "must not be empty");
    return std::nullopt;
  }
  if (value->is_string()) return Prompt(value->get<std::string>());
  if (value->is_array()) return read_ids(fields, "prompt", *value, context);
  fields.refuse("prompt", "must be a string or an array of token ids, not " + excerpt(*value));
  return std::nullopt;
}

void read_echo(Fields& fields, const Prompt& prompt, WireRequest& out) {
  if (!fields.boolean("echo").value_or(false)) return;
  if (out.request.logprobs) return fields.unsupported("echo", "with logprobs");
  const auto* text = std::get_if<std::string>(&prompt);
  if (!text) return fields.unsupported("echo", "of token ids");
  out.echo = *text;
}

}  // namespace

Result<WireRequest> parse_completion(std::string_view body, const ParseContext& context) {
  const auto json = parse_body(body);
  if (!json) return json.error();
  Fields fields(*json, {}, context.log);
  WireRequest out;
  read_shared(fields, context, out);
  const auto logprobs = fields.integer("logprobs", 0, context.options.max_top_logprobs);
  if (logprobs) out.request.logprobs = static_cast<uint32_t>(*logprobs);
  const auto prompt = read_prompt(fields, context);
  if (prompt) read_echo(fields, *prompt, out);
  const auto best = fields.integer("best_of", 1, context.options.max_choices);
  if (best && *best != int64_t{out.request.choices}) fields.unsupported("best_of", "other than n");
  if (const auto suffix = fields.string("suffix", SIZE_MAX); suffix && !suffix->empty()) {
    fields.unsupported("suffix");
  }
  if (const Status ok = finish_fields(fields, context, out); !ok) return ok.error();
  out.request.input = chat::RawPrompt{*prompt};
  return out;
}

}  // namespace tandem::protocol::openai
