// Fields that say what an answer's text must be, on any wire.
#pragma once

#include <string>

#include "chat/request.h"
#include "protocol/fields.h"

namespace tandem::protocol {

/// The only form of the answer; a second one is refused. `field` names it in errors.
void set_form(Fields& fields, const std::string& field, chat::AnswerForm form, chat::Request& out);

/// Any JSON object.
chat::AnswerForm json_object_form();

/// JSON that fits the schema of `holder`'s member `name`, which must be an object.
void read_schema(Fields& holder,
                 const std::string& name,
                 Fields& fields,
                 const std::string& field,
                 chat::Request& out);

/// guided_json (a schema, or its text), guided_regex, guided_choice and guided_grammar (Lark).
void read_guided(Fields& fields, chat::Request& out);

}  // namespace tandem::protocol
