// Devstral, Magistral, Ministral 3: a name and JSON arguments behind markers, block after block.
#include "dialect/dialect.h"

namespace tandem::dialect {

Dialect mistral();

Dialect devstral() {
  Dialect dialect = mistral();
  dialect.name = "devstral";
  dialect.signs = {.in_template = {{"[TOOL_CALLS]", "[ARGS]"}}, .order = 51};
  dialect.layout = {.call = "[TOOL_CALLS]$name[ARGS]$arguments"};
  return dialect;
}

}  // namespace tandem::dialect
