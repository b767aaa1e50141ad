#include "chat/answer_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "chat/thinking_close.h"
#include "dialect/grammar.h"
#include "grammar/end_tokens.h"
#include "grammar/source_limits.h"

namespace tandem::chat {
namespace {

using Kind = AnswerForm::Kind;
using Bound = Result<std::optional<gen::Grammar>>;

Error about(Error error, const std::string& field) {
  if (error.field == "grammar" && !field.empty()) error.field = field;
  return error;
}

Error unusable(std::string message, const std::string& field) {
  return {.code = ErrorCode::kInvalid, .message = std::move(message), .field = field};
}

gen::Grammar lark(std::string source, const AnswerForm& form = {}) {
  const bool is_clients = form.kind == Kind::kLark;
  return {.kind = is_clients ? gen::GrammarKind::kAmbiguousLark : gen::GrammarKind::kLark,
          .source = std::move(source)};
}

const Conversation* conversation_of(const Request& request) {
  return std::get_if<Conversation>(&request.input);
}

/// The tools with what binds the texts that they take, which are strict by it.
dialect::Tools tools_of(const Conversation& conversation) {
  if (conversation.text_rules.empty()) return dialect::Tools(conversation.tools);
  Json tools = conversation.tools;
  for (Json& tool : tools) {
    Json& function = tool["function"];
    const auto rule = conversation.text_rules.find(function.value("name", ""));
    if (rule == conversation.text_rules.end()) continue;
    function["strict"] = true;
    function["parameters"]["properties"][kTextInput]["pattern"] =
        "^(?:" + rule->second.pattern + ")$";
  }
  return dialect::Tools(tools);
}

bool has_strict_tools(const Conversation& conversation) {
  const dialect::Tools tools = tools_of(conversation);
  return std::ranges::any_of(tools.list(), &dialect::Tool::strict);
}

/// The grammars of one request, which share the time of one.
class Checks {
 public:
  explicit Checks(grammar::Compiler& compiler) : compiler_(compiler), left_(compiler.time()) {}

  Status usable(const gen::Grammar& grammar) { return compiler_.check(grammar, left_); }

  Bound checked(gen::Grammar grammar, const std::string& field) {
    if (Status fits = usable(grammar); !fits) return about(fits.error(), field);
    return std::optional(std::move(grammar));
  }

  /// The same in half of the time that is left, so that there is some for another one.
  Bound checked_in_half(gen::Grammar grammar, const std::string& field) {
    const auto kept = left_ / 2;
    left_ -= kept;
    auto out = checked(std::move(grammar), field);
    left_ += kept;
    return out;
  }

 private:
  grammar::Compiler& compiler_;
  grammar::Compiler::Duration left_;
};

/// Each by itself first: in a larger grammar errors would name another place.
Status check_text_rules(const Conversation& conversation, Checks& checks) {
  for (const auto& [tool, rule] : conversation.text_rules) {
    const gen::Grammar alone{.kind = gen::GrammarKind::kRegex, .source = rule.pattern};
    Status usable = grammar::check_source(alone);
    if (usable) usable = checks.usable(alone);
    if (!usable) return about(usable.error(), rule.field);
  }
  return {};
}

/// Before it becomes part of a larger grammar, whose errors would name another place.
Status check_form(const AnswerForm& form, const text::ModelText& model) {
  switch (form.kind) {
    case Kind::kJsonSchema:
      return grammar::check_source(
          {.kind = gen::GrammarKind::kJsonSchema,
           .source = form.schema.dump(-1, ' ', false, Json::error_handler_t::replace)});
    case Kind::kRegex:
      return grammar::check_source({.kind = gen::GrammarKind::kRegex, .source = form.source});
    case Kind::kLark:
      if (form.source.find("::=") != std::string::npos) {
        return unusable("grammars are written in Lark; EBNF (::=) is not offered", form.field);
      }
      if (Status fits = grammar::check_source(lark(form.source, form)); !fits) return fits;
      return grammar::check_end_tokens(form.source, *model.tokenizer, model.eos);
    case Kind::kChoice:
    case Kind::kAny:
      break;
  }
  return {};
}

dialect::TextForm text_form(const AnswerForm& form) {
  switch (form.kind) {
    case Kind::kJsonSchema:
      return {.expression = dialect::json_expression(form.schema), .schema = form.schema};
    case Kind::kRegex:
      return {.expression = dialect::regex_expression(form.source)};
    case Kind::kChoice:
      return {.expression = dialect::choice_expression(form.choices)};
    case Kind::kLark:
    case Kind::kAny:
      break;
  }
  return {.expression = "%lark {\n" + form.source + "\n}"};
}

/// The text alone, without anything before it.
gen::Grammar plain_grammar(const AnswerForm& form) {
  if (form.kind == Kind::kLark) return lark(form.source, form);
  return lark("start: " + text_form(form).expression);
}

dialect::GrammarRequest request_for(const Conversation& conversation,
                                    const dialect::Tools& tools,
                                    const GrammarPlace& place) {
  dialect::GrammarRequest request{.tools = tools, .only = conversation.calls.only};
  request.parallel = conversation.parallel_calls;
  if (place.may_think && place.model.thinking) {
    request.thinking = {.start = place.model.thinking->start, .end = place.model.thinking->end};
  }
  request.may_think = place.may_think;
  request.in_thinking = place.in_thinking;
  request.token = [&words =
                       *place.model.tokenizer](std::string_view text) -> std::optional<int32_t> {
    const auto id = words.id(text);
    return id && words.stands_alone(*id) ? id : std::nullopt;
  };
  return request;
}

/// With the tool's name, where a strict one's schema is at fault by itself.
Error about_tools(Error error,
                  const dialect::Tools& tools,
                  const dialect::Dialect& dialect,
                  Checks& checks) {
  if (error.code != ErrorCode::kInvalid) return error;
  for (const dialect::Tool& tool : tools.list()) {
    if (!tool.strict || !tool.parameters.is_object()) continue;
    const Status fits = checks.usable(lark("start: " + dialect::json_expression(tool.parameters)));
    if (fits || fits.error().code != ErrorCode::kInvalid) continue;
    error.message =
        fmt::format("the strict tool \"{}\", in the dialect {}: {}", tool.name.substr(0, 80),
                    dialect.name, about(fits.error(), error.field).message);
    break;
  }
  return error;
}

/// Calls of the tools, and perhaps text of a form beside them.
Bound checked_calls(const Result<std::string>& source,
                    const dialect::Tools& tools,
                    const dialect::Dialect& dialect,
                    Checks& checks,
                    const std::string& field,
                    const AnswerForm& form = {}) {
  if (!source) return about(source.error(), field);
  auto bound = checks.checked(lark(*source, form), field);
  if (!bound) return about_tools(bound.error(), tools, dialect, checks);
  return bound;
}

Status check_names(const CallRule& rule, const dialect::Tools& tools) {
  if (tools.empty()) return unusable("a call needs tools", rule.field);
  for (const std::string& name : rule.only) {
    if (!tools.has(name)) {
      return unusable(fmt::format("there is no tool \"{}\"", name.substr(0, 80)), rule.field);
    }
  }
  return {};
}

bool can_stand_in_markup(const std::string& name) {
  constexpr size_t kMostBytes = 128;
  static constexpr std::string_view kOthers = "_-.:/";
  return !name.empty() && name.size() <= kMostBytes && std::ranges::all_of(name, [](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || (c >= '0' && c <= '9') || kOthers.find(c) != std::string_view::npos;
  });
}

/// A call that is forced is one that the parser reads back as a call.
Status check_tools(const dialect::Tools& tools) {
  for (const dialect::Tool& tool : tools.list()) {
    if (!can_stand_in_markup(tool.name)) {
      return unusable(fmt::format("the tool \"{}\" cannot be forced: its name must be 1 to 128 "
                                  "letters, digits and _ - . : /",
                                  tool.name.substr(0, 80)),
                      "tools");
    }
    const dialect::Kinds kinds = dialect::Schema(tool.parameters).kinds();
    if (!tool.loose && tool.parameters.is_object() && kinds != 0 &&
        (kinds & dialect::kObject) == 0) {
      return unusable(
          fmt::format("the parameters of the tool \"{}\" must be of type \"object\"", tool.name),
          "tools");
    }
  }
  return {};
}

Bound required_calls(const Conversation& conversation, const GrammarPlace& place, Checks& checks) {
  const dialect::Tools tools = tools_of(conversation);
  const std::string& field = conversation.calls.field;
  if (Status named = check_names(conversation.calls, tools); !named) return named.error();
  if (Status fit = check_tools(tools); !fit) return fit.error();
  const auto source_for = [&](const dialect::Tools& of) {
    return dialect::call_grammar(place.dialect, request_for(conversation, of, place));
  };
  if (std::ranges::all_of(tools.list(), &dialect::Tool::strict)) {
    return checked_calls(source_for(tools), tools, place.dialect, checks, field);
  }
  if (const auto source = source_for(tools)) {
    auto exact = checks.checked_in_half(lark(*source), field);
    if (exact || exact.error().code != ErrorCode::kInvalid) return exact;
  }
  const dialect::Tools loose = tools.loosened();
  return checked_calls(source_for(loose), loose, place.dialect, checks, field);
}

Bound open_calls(const Conversation& conversation, const GrammarPlace& place, Checks& checks) {
  const dialect::Tools tools = tools_of(conversation).loosened();
  if (Status fit = check_tools(tools); !fit) return fit.error();
  return checked_calls(
      dialect::open_grammar(place.dialect, request_for(conversation, tools, place)), tools,
      place.dialect, checks, "tools");
}

Bound form_grammar(const Request& request, const GrammarPlace& place, Checks& checks) {
  const AnswerForm& form = request.form;
  if (Status fits = check_form(form, place.model); !fits) return about(fits.error(), form.field);
  // By itself first: beside thinking and calls it would not show that no text fits it.
  auto alone = checks.checked(plain_grammar(form), form.field);
  const Conversation* conversation = conversation_of(request);
  const bool begins =
      conversation != nullptr && !(conversation->continues_last_message && !place.in_thinking);
  if (!alone || !begins) return alone;
  const dialect::Tools tools = tools_of(*conversation).loosened();
  auto asked = request_for(*conversation, tools, place);
  asked.behind_thinking = gap_before_form(request, place.model);
  return checked_calls(dialect::text_grammar(place.dialect, asked, text_form(form)), tools,
                       place.dialect, checks, form.field, form);
}

}  // namespace

bool is_bound(const Request& request) {
  if (request.form.kind != Kind::kAny) return true;
  const Conversation* conversation = conversation_of(request);
  return conversation != nullptr &&
         (conversation->calls.is_required || has_strict_tools(*conversation));
}

std::string gap_before_form(const Request& request, const text::ModelText& model) {
  const Kind kind = request.form.kind;
  return kind == Kind::kAny || kind == Kind::kJsonSchema ? std::string() : behind_thinking(model);
}

Result<std::optional<gen::Grammar>> answer_grammar(const Request& request,
                                                   const GrammarPlace& place) {
  if (!is_bound(request)) return std::optional<gen::Grammar>();
  if (request.ignore_eos) {
    return unusable("an answer of a form, or with calls of one, ends with it", "ignore_eos");
  }
  Checks checks(place.compiler);
  const Conversation* conversation = conversation_of(request);
  if (conversation != nullptr) {
    if (Status usable = check_text_rules(*conversation, checks); !usable) return usable.error();
  }
  if (conversation != nullptr && conversation->calls.is_required) {
    return required_calls(*conversation, place, checks);
  }
  if (request.form.kind != Kind::kAny) return form_grammar(request, place, checks);
  return open_calls(*conversation, place, checks);
}

}  // namespace tandem::chat
