// LongCat: keys and values in tags with its own prefix.
#include "dialect/dialect.h"
#include "dialect/keyed_calls.h"

namespace tandem::dialect {

Dialect longcat() {
  return {
      .name = "longcat",
      .signs = {.in_template = {{"<longcat_tool_call>"}}, .parser_names = {"longcat"}, .order = 13},
      .syntax =
          std::make_shared<KeyedCalls>(KeyedCallMarkers{.start = "<longcat_tool_call>",
                                                        .end = "</longcat_tool_call>",
                                                        .key_open = "<longcat_arg_key>",
                                                        .key_close = "</longcat_arg_key>",
                                                        .value_open = "<longcat_arg_value>",
                                                        .value_close = "</longcat_arg_value>"}),
      .layout = {.call = "<longcat_tool_call>$name\n$parameters</longcat_tool_call>",
                 .between = "\n",
                 .parameter = "<longcat_arg_key>$key</longcat_arg_key>\n"
                              "<longcat_arg_value>$value</longcat_arg_value>\n",
                 .spelling = Spelling::kText}};
}

}  // namespace tandem::dialect
