// Mistral to Nemo: a list of JSON objects with an id each. Reads what later ones write as well.
#include "dialect/dialect.h"
#include "dialect/headed_json.h"
#include "dialect/json_body.h"

namespace tandem::dialect {

Dialect mistral() {
  const auto list = std::make_shared<JsonBody>(
      JsonBodyMarkers{.starts = {"[TOOL_CALLS]"}, .id_comes_last = true});
  return {.name = "mistral",
          .signs = {.in_template = {{"[TOOL_CALLS]"}},
                    .in_vocabulary = {"[TOOL_CALLS]"},
                    .parser_names = {"mistral"},
                    .order = 52},
          .syntax = std::make_shared<HeadedJson>(HeadedJsonMarkers{.starts = {"[TOOL_CALLS]"},
                                                                   .call_begins = {"[TOOL_CALLS]"},
                                                                   .before_id = "[CALL_ID]",
                                                                   .head_ends = {"[ARGS]"},
                                                                   .list = list}),
          .layout = {.before = "[TOOL_CALLS][",
                     .call = "{\"name\": \"$name\", \"arguments\": $arguments, \"id\": \"$id\"}",
                     .between = ", ",
                     .after = "]",
                     .id = "call0000$index",
                     .id_pattern = "[a-zA-Z0-9]{9}"}};
}

}  // namespace tandem::dialect
