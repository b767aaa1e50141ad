// GLM-4.7: keys and values in tags, without line breaks.
#include "dialect/dialect.h"
#include "dialect/keyed_calls.h"

namespace tandem::dialect {

Dialect glm47() {
  return {.name = "glm47",
          .signs = {.in_template = {{"<arg_key>"}}, .parser_names = {"glm47"}, .order = 25},
          .syntax = std::make_shared<KeyedCalls>(KeyedCallMarkers{.start = "<tool_call>",
                                                                  .end = "</tool_call>",
                                                                  .key_open = "<arg_key>",
                                                                  .key_close = "</arg_key>",
                                                                  .value_open = "<arg_value>",
                                                                  .value_close = "</arg_value>"}),
          .layout = {.call = "<tool_call>$name$parameters</tool_call>",
                     .parameter = "<arg_key>$key</arg_key><arg_value>$value</arg_value>",
                     .spelling = Spelling::kText}};
}

}  // namespace tandem::dialect
