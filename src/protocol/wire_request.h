// A generation as a client asked for it, checked, whichever endpoint it came by.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/request.h"
#include "chat/service.h"
#include "protocol/fields.h"
#include "protocol/options.h"

namespace tandem::protocol {

struct WireRequest {
  chat::Request request;  // without id, client and salt
  std::string model;      // as asked for; the served model's id when the client named none
  bool stream = false;
  bool include_usage = false;
  std::string echo;                  // text put before the answer
  bool names_priority = false;       // the client said how urgent it is
  Json notes;                        // of the wire, for its encoder
  std::vector<std::string> ignored;  // fields nobody knows
  std::vector<chat::Warning> warnings;
};

struct ParseContext {
  const chat::ModelInfo& model;
  const Options& options;
  FieldLog* log = nullptr;  // gets the fields of the body, for descriptions
};

/// Whether this names the served model: its id, an alias, "default_model" or nothing; with or
/// without Ollama's ":latest".
bool is_served(const std::string& name, const ParseContext& context);

/// kNotFound about "model".
Error unknown_model(const std::string& name);

/// Parses a body that must be a JSON object.
Result<Json> parse_body(std::string_view body);

// Readers of fields that several wires have. Errors are kept in `fields`.

/// Which model, for `out.model`.
void read_model(Fields& fields, const ParseContext& context, WireRequest& out);

/// How to draw; what is left out is the operator's.
void read_sampling(Fields& fields, const ParseContext& context, gen::Sampling& out);
void read_seed(Fields& fields, std::optional<uint64_t>& out);

/// An array of token ids of the vocabulary, given as the field `name`.
std::optional<std::vector<gen::TokenId>> read_ids(Fields& fields,
                                                  const char* name,
                                                  const Json& value,
                                                  const ParseContext& context);

/// Priority and timeout.
void read_scheduling(Fields& fields, chat::Request& out);

/// Model, stream, sampling, limits, scheduling, index_reuse and guided_….
void read_generation(Fields& fields, const ParseContext& context, WireRequest& out);

/// A string or an array of them.
void read_stop(Fields& fields,
               const char* name,
               const ParseContext& context,
               std::vector<std::string>& out);

/// How much a model should think: "none" switches thinking off.
void set_effort(const std::string& effort, Json& template_arguments);

/// reasoning_effort, reasoning.effort, thinking, enable_thinking and chat_template_kwargs, of which
/// the later win.
/// {"thinking": {"type": "adaptive"}} leaves it to the model.
void read_template_arguments(Fields& fields, Json& out);

/// What keeps an answer in bounds: guards, hesitation_penalty, thinking_budget and its other names,
/// of which the later win: thinking.budget_tokens, reasoning.max_tokens,
/// chat_template_kwargs.thinking_budget. -1 is none.
void read_guards(Fields& fields, const ParseContext& context, chat::GuardSettings& out);

/// The error kept by `fields`, or the unknown ones, with those that `out` has already: refused or
/// counted.
Status finish_fields(const Fields& fields, const ParseContext& context, WireRequest& out);

}  // namespace tandem::protocol
