#include "protocol/wire_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "protocol/answer_form.h"

namespace tandem::protocol {
namespace {

constexpr size_t kMaxModelBytes = 512;
constexpr size_t kMaxStopBytes = 1024;
constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();
constexpr double kMaxSeconds = 7.0 * 24 * 3600;

void read_float(Fields& fields, const char* name, double least, double most, float& out) {
  if (const auto value = fields.number(name, least, most)) out = static_cast<float>(*value);
}

/// 0 means that all tokens stay; what is above it stays above it as a float.
void read_top_p(Fields& fields, float& out) {
  const auto value = fields.number("top_p", 0, 1);
  if (!value) return;
  out = static_cast<float>(*value);
  if (*value > 0) out = std::max(out, std::numeric_limits<float>::min());
}

void read_count(Fields& fields, const char* name, int64_t least, uint32_t& out) {
  const auto value = fields.integer(name, least, kMaxTokens);
  if (value) out = static_cast<uint32_t>(std::max<int64_t>(*value, 0));
}

void read_penalty(
    Fields& fields, const std::string& name, double least, double most, gen::Penalty& out) {
  // "repetition_penalty" has "repetition_context_size".
  const std::string kind = name.substr(0, name.find('_'));
  read_float(fields, name.c_str(), least, most, out.value);
  read_count(fields, (kind + "_context_size").c_str(), 0, out.context);
}

void read_logit_bias(Fields& fields, const ParseContext& context, gen::Sampling& out) {
  const Json* biases = fields.object("logit_bias");
  if (!biases) return;
  out.logit_bias.clear();
  for (const auto& [key, value] : biases->items()) {
    gen::TokenId id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool whole = error == std::errc() && end == key.data() + key.size();
    const bool known = context.model.vocab == 0 || id < static_cast<int64_t>(context.model.vocab);
    if (!whole || id < 0 || !known) {
      return fields.refuse(
          "logit_bias", fmt::format("must name token ids from 0 to {}, not {}",
                                    int64_t{context.model.vocab} - 1, literal(shortened(key, 40))));
    }
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100)) {
      return fields.refuse("logit_bias",
                           fmt::format("must give numbers from -100 to 100, not {} for token {}",
                                       excerpt(value), id));
    }
    out.logit_bias.push_back({.id = id, .bias = value.get<float>()});
  }
}

void read_limits(Fields& fields, chat::Request& out) {
  const auto old_name = fields.integer("max_tokens", 1, kMaxTokens);
  const auto new_name = fields.integer("max_completion_tokens", 1, kMaxTokens);
  if (old_name) out.max_tokens = static_cast<uint32_t>(*old_name);
  if (new_name) out.max_tokens = static_cast<uint32_t>(*new_name);
  read_count(fields, "min_tokens", 0, out.min_tokens);
  if (out.max_tokens && out.min_tokens > *out.max_tokens) {
    fields.refuse("min_tokens", fmt::format("must be at most max_tokens ({}), not {}",
                                            *out.max_tokens, out.min_tokens));
  }
  out.ignore_eos = fields.boolean("ignore_eos").value_or(false);
}

/// {"effort": …}
void read_reasoning(Fields& fields, Json& template_arguments) {
  const Json* reasoning = fields.object("reasoning");
  if (!reasoning) return;
  Fields inner(*reasoning, "reasoning.");
  if (const auto effort = inner.string("effort", 32)) set_effort(*effort, template_arguments);
  if (inner.error()) fields.keep(*inner.error());
}

/// {"type": enabled, disabled or adaptive, "budget_tokens": …}
void read_thinking(Fields& fields, Json& template_arguments) {
  const Json* thinking = fields.object("thinking");
  if (!thinking) return;
  Fields inner(*thinking, "thinking.");
  const auto type = inner.string("type", 32);
  if (inner.error()) return fields.keep(*inner.error());
  if (type == "enabled" || type == "disabled") {
    template_arguments["enable_thinking"] = type == "enabled";
  } else if (type != "adaptive") {
    fields.refuse("thinking.type", R"(must be "enabled", "disabled" or "adaptive")");
  }
}

}  // namespace

bool is_served(const std::string& given, const ParseContext& context) {
  constexpr std::string_view kTag = ":latest";
  const auto& aliases = context.options.aliases;
  if (given == context.model.id) return true;
  const std::string name = given.size() > kTag.size() && given.ends_with(kTag)
                               ? given.substr(0, given.size() - kTag.size())
                               : given;
  return name.empty() || name == "default_model" || name == context.model.id ||
         std::find(aliases.begin(), aliases.end(), name) != aliases.end();
}

Error unknown_model(const std::string& name) {
  if (name.size() > kMaxModelBytes) {
    return {ErrorCode::kInvalid,
            fmt::format("'model' must have at most {} bytes, not {}", kMaxModelBytes, name.size()),
            "model"};
  }
  return {ErrorCode::kNotFound,
          fmt::format("the model {} is not served here: see /v1/models", literal(name)), "model"};
}

Result<Json> parse_body(std::string_view body) {
  auto json = parse_json(body);
  if (json && !json->is_object()) {
    return Error{ErrorCode::kInvalid, "the body must be a JSON object, not " + excerpt(*json)};
  }
  return json;
}

void read_sampling(Fields& fields, const ParseContext& context, gen::Sampling& out) {
  out = context.options.sampling;
  read_float(fields, "temperature", 0, 100, out.temperature);
  read_top_p(fields, out.top_p);
  read_count(fields, "top_k", -1, out.top_k);
  read_float(fields, "min_p", 0, 1, out.min_p);
  read_float(fields, "xtc_probability", 0, 1, out.xtc_probability);
  read_float(fields, "xtc_threshold", 0, 1, out.xtc_threshold);
  read_penalty(fields, "repetition_penalty", 0, 100, out.repetition);
  read_penalty(fields, "presence_penalty", -10, 10, out.presence);
  read_penalty(fields, "frequency_penalty", -10, 10, out.frequency);
  read_logit_bias(fields, context, out);
}

void read_seed(Fields& fields, std::optional<uint64_t>& out) {
  const Json* value = fields.any("seed");
  if (!value) return;
  if (!value->is_number_integer()) {
    return fields.refuse_value("seed", "must be a whole number of at most 64 bits");
  }
  out = value->is_number_unsigned() ? value->get<uint64_t>()
                                    : static_cast<uint64_t>(value->get<int64_t>());
}

void read_model(Fields& fields, const ParseContext& context, WireRequest& out) {
  const Json* value = fields.any("model");
  out.model = context.model.id;
  if (!value) return;
  if (!value->is_string()) return fields.refuse_value("model", "must be a string");
  const auto& name = value->get_ref<const std::string&>();
  if (!is_served(name, context)) return fields.keep(unknown_model(name));
  if (!name.empty()) out.model = name;
}

std::optional<std::vector<gen::TokenId>> read_ids(Fields& fields,
                                                  const char* name,
                                                  const Json& value,
                                                  const ParseContext& context) {
  std::vector<gen::TokenId> ids;
  const int64_t vocab = context.model.vocab == 0 ? INT32_MAX : int64_t{context.model.vocab};
  for (const Json& entry : value) {
    const bool whole = entry.is_number_integer() &&
                       !(entry.is_number_unsigned() && entry.get<uint64_t>() > INT32_MAX);
    if (!whole || entry.get<int64_t>() < 0 || entry.get<int64_t>() >= vocab) {
      fields.refuse(
          name, fmt::format("must hold token ids from 0 to {}, not {}", vocab - 1, excerpt(entry)));
      return std::nullopt;
    }
    ids.push_back(entry.get<gen::TokenId>());
  }
  return ids;
}

namespace {

std::string guard_names() {
  std::string names;
  for (const chat::GuardSwitch& guard : chat::kGuardSwitches) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", guard.name);
  }
  return names;
}

/// "guards": {"repeated_span": false, …}
void read_guard_switches(Fields& fields, chat::GuardSettings& out) {
  const Json* guards = fields.object("guards");
  if (!guards) return;
  Fields inner(*guards, "guards.");
  for (const chat::GuardSwitch& guard : chat::kGuardSwitches) {
    if (const auto wanted = inner.boolean(guard.name)) out.*guard.member = *wanted;
  }
  if (inner.error()) fields.keep(*inner.error());
  if (const auto unknown = inner.unknown(); !unknown.empty()) {
    fields.refuse("guards", fmt::format("must not name {}: the guards are {}",
                                        literal(shortened(unknown[0], 40)), guard_names()));
  }
}

}  // namespace

void read_guards(Fields& fields, const ParseContext& context, chat::GuardSettings& out) {
  out = context.options.guards;
  read_guard_switches(fields, out);
  const auto read = [&](Fields& from, const char* name) {
    const auto tokens = from.integer(name, -1, kMaxTokens);
    if (!tokens) return;
    out.thinking_budget.reset();
    if (*tokens >= 0) out.thinking_budget = static_cast<uint32_t>(*tokens);
  };
  const auto read_inner = [&](const char* object, const char* name) {
    const Json* given = fields.object(object);
    if (!given) return;
    Fields inner(*given, fmt::format("{}.", object));
    read(inner, name);
    if (inner.error()) fields.keep(*inner.error());
  };
  read_inner("thinking", "budget_tokens");
  read_inner("reasoning", "max_tokens");
  read_inner("chat_template_kwargs", "thinking_budget");
  read(fields, "thinking_budget");
  read_float(fields, "hesitation_penalty", 0, double{chat::kMostHesitationPenalty},
             out.hesitation_penalty);
}

void read_scheduling(Fields& fields, chat::Request& out) {
  if (const auto priority = fields.string("priority", 16)) {
    if (*priority != "normal" && *priority != "low") {
      fields.refuse_value("priority", R"(must be "normal" or "low")");
    }
    if (*priority == "low") out.priority = gen::Priority::kLow;
  }
  for (const char* name : {"timeout", "deadline"}) {
    const auto seconds = fields.number(name, 0.001, kMaxSeconds);
    if (seconds) out.deadline = std::chrono::milliseconds(std::llround(*seconds * 1000));
  }
}

void read_generation(Fields& fields, const ParseContext& context, WireRequest& out) {
  read_model(fields, context, out);
  out.stream = fields.boolean("stream").value_or(false);
  read_sampling(fields, context, out.request.sampling);
  read_seed(fields, out.request.seed);
  read_limits(fields, out.request);
  read_scheduling(fields, out.request);
  out.names_priority = fields.has("priority");
  const auto reuse = fields.integer("index_reuse", 0, gen::kMostIndexReuse);
  out.request.index_reuse = static_cast<uint32_t>(reuse.value_or(0));
  read_guided(fields, out.request);
  for (const char* name : {"adapters", "adapter", "draft_model", "grammar", "json_schema"}) {
    fields.unsupported(name);
  }
}

void read_stop(Fields& fields,
               const char* name,
               const ParseContext& context,
               std::vector<std::string>& out) {
  const Json* value = fields.any(name);
  if (!value) return;
  if (value->is_string()) {
    if (value->get_ref<const std::string&>().empty()) return;
    out = {value->get<std::string>()};
  } else if (value->is_array()) {
    if (value->size() > context.options.max_stop_strings) {
      return fields.refuse(name, fmt::format("must have at most {} strings, not {}",
                                             context.options.max_stop_strings, value->size()));
    }
    for (const Json& entry : *value) {
      if (!entry.is_string() || entry.get_ref<const std::string&>().empty()) {
        return fields.refuse(name, "must hold strings that are not empty, not " + excerpt(entry));
      }
      out.push_back(entry.get<std::string>());
    }
  } else {
    return fields.refuse_value(name, "must be a string or an array of strings");
  }
  for (const std::string& text : out) {
    if (text.size() > kMaxStopBytes) {
      return fields.refuse(name, fmt::format("must have strings of at most {} bytes, not {}",
                                             kMaxStopBytes, text.size()));
    }
  }
}

void set_effort(const std::string& effort, Json& template_arguments) {
  template_arguments["reasoning_effort"] = effort;
  if (effort == "none") template_arguments["enable_thinking"] = false;
}

void read_template_arguments(Fields& fields, Json& out) {
  if (const auto effort = fields.string("reasoning_effort", 32)) set_effort(*effort, out);
  read_reasoning(fields, out);
  read_thinking(fields, out);
  if (const auto thinking = fields.boolean("enable_thinking")) out["enable_thinking"] = *thinking;
  if (const Json* arguments = fields.object("chat_template_kwargs")) {
    for (const auto& [name, value] : arguments->items()) {
      if (name == "messages" || name == "tools" || name == "add_generation_prompt") {
        fields.refuse("chat_template_kwargs", fmt::format("must not set {}", literal(name)));
      }
      out[name] = value;
    }
  }
}

Status finish_fields(const Fields& fields, const ParseContext& context, WireRequest& out) {
  if (fields.error()) return *fields.error();
  for (std::string& name : fields.unknown()) out.ignored.push_back(std::move(name));
  if (!context.options.strict_fields || out.ignored.empty()) return {};
  return Error{
      ErrorCode::kInvalid,
      fmt::format("the field {} is not known here", literal(shortened(out.ignored[0], 80))),
      shortened(out.ignored[0], 80)};
}

}  // namespace tandem::protocol
