// Mistral Small 3.2: a name, an id and JSON arguments behind markers, block after block.
#include "dialect/dialect.h"

namespace tandem::dialect {

Dialect mistral();

Dialect mistral_small() {
  Dialect dialect = mistral();
  dialect.name = "mistral_small";
  dialect.signs = {.in_template = {{"[TOOL_CALLS]", "[CALL_ID]"}}, .order = 50};
  dialect.layout = {.call = "[TOOL_CALLS]$name[CALL_ID]$id[ARGS]$arguments",
                    .id = "call0000$index",
                    .id_pattern = "[a-zA-Z0-9]{9}"};
  return dialect;
}

}  // namespace tandem::dialect
