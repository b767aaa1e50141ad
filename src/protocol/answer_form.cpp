#include "protocol/answer_form.h"

#include <fmt/format.h>

#include <utility>

namespace tandem::protocol {
namespace {

using Kind = chat::AnswerForm::Kind;

constexpr size_t kMostChoices = 1024;

/// What is wrong with a text in a field, which reading JSON says of a body.
std::string about_text(const Error& error) {
  static constexpr std::string_view kBody = "the body ";
  if (!error.message.starts_with(kBody)) return error.message;
  return "its text " + error.message.substr(kBody.size());
}

void read_guided_json(Fields& fields, chat::Request& out) {
  const Json* given = fields.any("guided_json");
  if (!given) return;
  Json schema = *given;
  if (given->is_string()) {
    auto parsed = parse_json(given->get_ref<const std::string&>());
    if (!parsed) {
      return fields.refuse("guided_json", "must be a JSON schema: " + about_text(parsed.error()));
    }
    schema = *std::move(parsed);
  }
  if (!schema.is_object()) return fields.refuse_value("guided_json", "must be a JSON schema");
  set_form(fields, "guided_json", {.kind = Kind::kJsonSchema, .schema = std::move(schema)}, out);
}

void read_guided_choice(Fields& fields, chat::Request& out) {
  const Json* given = fields.array("guided_choice");
  if (!given) return;
  chat::AnswerForm form{.kind = Kind::kChoice};
  for (const Json& choice : *given) {
    if (!choice.is_string() || choice.get_ref<const std::string&>().empty()) {
      return fields.refuse("guided_choice",
                           "must hold strings that are not empty, not " + excerpt(choice));
    }
    form.choices.push_back(choice.get<std::string>());
  }
  if (form.choices.empty() || form.choices.size() > kMostChoices) {
    return fields.refuse("guided_choice", fmt::format("must hold 1 to {} strings, not {}",
                                                      kMostChoices, form.choices.size()));
  }
  set_form(fields, "guided_choice", std::move(form), out);
}

void read_source(Fields& fields, const char* name, Kind kind, chat::Request& out) {
  auto source = fields.string(name, gen::Grammar::kMostBytes);
  if (!source) return;
  if (source->empty()) return fields.refuse(name, "must not be empty");
  set_form(fields, name, {.kind = kind, .source = *std::move(source)}, out);
}

}  // namespace

void set_form(Fields& fields, const std::string& field, chat::AnswerForm form, chat::Request& out) {
  if (out.form.kind != Kind::kAny) {
    return fields.refuse(field, fmt::format("excludes {}", literal(out.form.field)));
  }
  form.field = field;
  out.form = std::move(form);
}

chat::AnswerForm json_object_form() {
  return {.kind = Kind::kJsonSchema, .schema = Json{{"type", "object"}}};
}

void read_schema(Fields& holder,
                 const std::string& name,
                 Fields& fields,
                 const std::string& field,
                 chat::Request& out) {
  const Json* schema = holder.object(name);
  if (!schema) holder.refuse(name, "is missing: it must be a JSON schema");
  if (holder.error()) return fields.keep(*holder.error());
  set_form(fields, field, {.kind = Kind::kJsonSchema, .schema = *schema}, out);
}

void read_guided(Fields& fields, chat::Request& out) {
  read_guided_json(fields, out);
  read_source(fields, "guided_regex", Kind::kRegex, out);
  read_guided_choice(fields, out);
  read_source(fields, "guided_grammar", Kind::kLark, out);
}

}  // namespace tandem::protocol
