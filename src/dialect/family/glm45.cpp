// GLM-4.5 and 4.6: keys and values in tags, one a line.
#include "dialect/dialect.h"
#include "dialect/keyed_calls.h"

namespace tandem::dialect {

Dialect glm45() {
  return {.name = "glm45",
          .signs = {.in_template = {{"<arg_key>", "{function-name}\\n"},
                                    {"<arg_key>", "{function-name}\n"}},
                    .parser_names = {"glm45"},
                    .order = 24},
          .syntax = std::make_shared<KeyedCalls>(KeyedCallMarkers{.start = "<tool_call>",
                                                                  .end = "</tool_call>",
                                                                  .key_open = "<arg_key>",
                                                                  .key_close = "</arg_key>",
                                                                  .value_open = "<arg_value>",
                                                                  .value_close = "</arg_value>"}),
          .layout = {.call = "<tool_call>$name\n$parameters</tool_call>",
                     .between = "\n",
                     .parameter = "<arg_key>$key</arg_key>\n<arg_value>$value</arg_value>\n",
                     .spelling = Spelling::kText}};
}

}  // namespace tandem::dialect
