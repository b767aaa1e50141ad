// The grammar of an answer that must have a form or calls.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "chat/request.h"
#include "dialect/dialect.h"
#include "gen/request.h"
#include "grammar/compiler.h"
#include "text/checkpoint_text.h"

namespace tandem::chat {

/// What a model and a prompt bring to the grammar.
struct GrammarPlace {
  const dialect::Dialect& dialect;
  const text::ModelText& model;
  grammar::Compiler& compiler;
  bool may_think = false;    // the answer may begin with thinking
  bool in_thinking = false;  // the prompt left it open
};

/// Whether something binds the answer: its form, a required call, strict tools, texts of tools.
bool is_bound(const Request& request);

/// What stands between thinking and text of the request's form without being part of either: the
/// line breaks that the model's template writes there. Empty without a form, and before JSON, which
/// may have space in front of it.
std::string gap_before_form(const Request& request, const text::ModelText& model);

/// Unset when nothing binds the answer. The grammar was compiled once, so that ranks will take it.
/// Where a schema of a tool that is not strict cannot be enforced, its arguments are any object.
/// Errors: kInvalid with the request's field, those of grammar::Compiler::check().
Result<std::optional<gen::Grammar>> answer_grammar(const Request& request,
                                                   const GrammarPlace& place);

}  // namespace tandem::chat
